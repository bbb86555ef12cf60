// Memory that a target shares with us: files that are what we think they are, and mappings of them
// that cannot end us.
//
// A number of a descriptor or an address that was read from a target may mean another file a moment
// later: a thread of the target can swap it for a file that we may write and it may not. So a file
// is taken by descriptor (pidfd_getfd), looked at behind our own descriptor, and used only if it is
// an anonymous memory file of the name that we gave it; it is never opened by a path that leads
// through the target. SharedPages maps one: pages that the target takes away (by cutting the file,
// or where memory is full) are replaced by empty ones instead of ending Assay with SIGBUS.
// Threads: safe everywhere. Failures: Errors; a descriptor that is something else is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::capture {

enum class MemoryState : uint8_t {
  fresh,   // just made: empty and without seals
  sealed,  // it cannot become smaller any more
};

// An Error unless the descriptor is a memory file of this name, to be read and written.
Result<void> check_memory_file(int fd, const std::string& name, MemoryState state);

// The target's descriptor `number`, which is to be a fresh memory file of this name.
Result<UniqueFd> take_memory_file(pid_t pid, int number, const std::string& name);

// The file behind a mapping of the process, which is to be a sealed memory file whose name begins
// so. `path` is its entry in map_files.
Result<UniqueFd> open_mapped_memory(const std::string& path, const std::string& name);

class SharedPages {
 public:
  SharedPages() = default;
  static Result<SharedPages> map(int fd, uint64_t offset, uint64_t size);
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&&) = delete;
  ~SharedPages();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  size_t slot_ = 0;  // where the signal's handler finds it
};

}  // namespace assay::capture
