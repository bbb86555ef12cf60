// The memory of another process, read and written from outside: the only door to it.
//
// process_vm_readv and process_vm_writev keep to the pages' permissions; TargetMemory is
// /proc/PID/mem, which also reads and writes code (what ptrace's POKETEXT does, in one call). In: a
// pid and addresses of that process, which are checked by the kernel alone. Out: bytes, or how many
// there were. Threads: any. Failures: false or fewer bytes, with errno; a process that may not be
// touched is an Error from open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

// How many bytes from `address` on could be copied: fewer where the mapping ends. Never stops the
// process.
size_t read_target(pid_t pid, uint64_t address, std::span<std::byte> into);
bool read_target_whole(pid_t pid, uint64_t address, void* into, size_t bytes);
bool write_target(pid_t pid, uint64_t address, const void* from, size_t bytes);
// The text at `address` up to its NUL, or the first `most_bytes` of it.
std::string read_target_text(pid_t pid, uint64_t address, size_t most_bytes);

class TargetMemory {
 public:
  enum class Access : uint8_t { read, write };
  // `proc_root` is where proc is mounted; tests have their own.
  static Result<TargetMemory> open(pid_t pid, Access access,
                                   const std::string& proc_root = "/proc");

  bool read(uint64_t address, void* into, size_t bytes) const;
  bool write(uint64_t address, const void* from, size_t bytes) const;

 private:
  explicit TargetMemory(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace assay::os
