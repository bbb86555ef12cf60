#include "os/process/target_memory.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace assay::os {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

// Page by page, so that the end of the mapping cuts it short instead of failing it.
size_t read_target(pid_t pid, uint64_t address, std::span<std::byte> into) {
  if (address > UINT64_MAX - into.size()) into = into.first(UINT64_MAX - address);
  std::vector<iovec> remote;
  for (uint64_t at = address, end = address + into.size(); at < end;) {
    uint64_t size = std::min(kPage - at % kPage, end - at);
    remote.push_back({reinterpret_cast<void*>(at), size});
    at += size;
  }
  iovec local{into.data(), into.size()};
  ssize_t got = ::process_vm_readv(pid, &local, 1, remote.data(), remote.size(), 0);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

bool read_target_whole(pid_t pid, uint64_t address, void* into, size_t bytes) {
  iovec local{into, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool write_target(pid_t pid, uint64_t address, const void* from, size_t bytes) {
  iovec local{const_cast<void*>(from), bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};
  return ::process_vm_writev(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

std::string read_target_text(pid_t pid, uint64_t address, size_t most_bytes) {
  std::string text(most_bytes, '\0');
  text.resize(read_target(pid, address, std::as_writable_bytes(std::span(text))));
  return text.substr(0, text.find('\0'));
}

Result<TargetMemory> TargetMemory::open(pid_t pid, Access access, const std::string& proc_root) {
  int flags = (access == Access::read ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  UniqueFd fd(::open(fmt::format("{}/{}/mem", proc_root, pid).c_str(), flags));
  if (!fd.valid()) return fail_errno("the memory of process {} cannot be opened", pid);
  return TargetMemory(std::move(fd));
}

bool TargetMemory::read(uint64_t address, void* into, size_t bytes) const {
  return ::pread(fd_.get(), into, bytes, static_cast<off_t>(address)) ==
         static_cast<ssize_t>(bytes);
}

bool TargetMemory::write(uint64_t address, const void* from, size_t bytes) const {
  return ::pwrite(fd_.get(), from, bytes, static_cast<off_t>(address)) ==
         static_cast<ssize_t>(bytes);
}

}  // namespace assay::os
