#include "capture/heap/trust/target_memory.h"

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace assay::capture {
namespace {

constexpr int kSealExec = 0x20;  // F_SEAL_EXEC: set by the kernel itself where it was asked to

std::string own_link(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

// Only a memory file that was made to be sealed has no seal that forbids seals.
bool has_seals(int fd, MemoryState state) {
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return false;
  if (state == MemoryState::fresh) return (seals & ~kSealExec) == 0;
  return (seals & F_SEAL_SHRINK) != 0 && (seals & F_SEAL_WRITE) == 0;
}

// Mappings whose pages may vanish. A slot is taken once its begin is set.
struct Slot {
  std::atomic<uintptr_t> begin{0}, end{0};
};
constexpr size_t kMostMappings = 8192;
std::array<Slot, kMostMappings> slots;
std::mutex slots_mutex;
struct sigaction before {};

// An empty page in the place of the one that is gone; the reader finds nothing there.
void replace_page(int signal, siginfo_t* info, void* context) {
  auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= slot.end.load(std::memory_order_acquire)) continue;
    int kept_errno = errno;
    constexpr uintptr_t kPage = 4096;
    void* made = ::mmap(reinterpret_cast<void*>(at & ~(kPage - 1)), kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = kept_errno;
    if (made != MAP_FAILED) return;
  }
  // Not ours: as it would have been. The instruction is tried again.
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
    return;
  }
  ::sigaction(SIGBUS, &before, nullptr);
}

void handle_lost_pages() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = replace_page;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &before);
  });
}

}  // namespace

Result<void> check_memory_file(int fd, const std::string& name, MemoryState state) {
  struct stat status {};
  struct statfs system {};
  if (::fstat(fd, &status) != 0 || ::fstatfs(fd, &system) != 0)
    return fail_errno("the target's memory file cannot be looked at");
  std::error_code failed;
  std::string link = std::filesystem::read_symlink(own_link(fd), failed).string();
  int flags = ::fcntl(fd, F_GETFL);
  bool is_memory = S_ISREG(status.st_mode) && status.st_nlink == 0 &&
                   system.f_type == TMPFS_MAGIC && link == "/memfd:" + name + " (deleted)";
  bool is_usable = flags >= 0 && (flags & O_ACCMODE) == O_RDWR && has_seals(fd, state);
  bool has_size = state == MemoryState::sealed || status.st_size == 0;
  if (is_memory && is_usable && has_size) return {};
  return fail(
      "the target put another file in the place of the memory that it was to share: nothing was "
      "written to it");
}

Result<UniqueFd> take_memory_file(pid_t pid, int number, const std::string& name) {
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return fail_errno("process {} cannot be referred to", pid);
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
  if (!fd.valid()) return fail_errno("the target's memory file cannot be taken");
  if (auto ours = check_memory_file(fd.get(), name, MemoryState::fresh); !ours)
    return std::unexpected(ours.error());
  return fd;
}

// Looked at before it is opened; then opened behind our own descriptor, which the target cannot
// swap.
Result<UniqueFd> open_mapped_memory(const std::string& path, const std::string& name) {
  UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  struct statfs system {};
  if (!place.valid() || ::fstat(place.get(), &status) != 0 || ::fstatfs(place.get(), &system) != 0)
    return fail_errno("memory of the target cannot be opened");
  if (!S_ISREG(status.st_mode) || status.st_nlink != 0 || system.f_type != TMPFS_MAGIC)
    return fail("what the target has mapped is not memory of ours");
  UniqueFd fd(::open(own_link(place.get()).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("memory of the target cannot be opened");
  if (auto ours = check_memory_file(fd.get(), name, MemoryState::sealed); !ours)
    return std::unexpected(ours.error());
  return fd;
}

Result<SharedPages> SharedPages::map(int fd, uint64_t offset, uint64_t size) {
  handle_lost_pages();
  std::lock_guard lock(slots_mutex);
  size_t free = 0;
  while (free < slots.size() && slots[free].begin.load() != 0) ++free;
  if (free == slots.size()) return fail("too much memory is shared with targets");
  void* at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return fail_errno("cannot map the memory");
  auto begin = reinterpret_cast<uintptr_t>(at);
  slots[free].end.store(begin + size, std::memory_order_release);
  slots[free].begin.store(begin, std::memory_order_release);
  SharedPages pages;
  pages.bytes_ = {static_cast<std::byte*>(at), size};
  pages.slot_ = free;
  return pages;
}

SharedPages::SharedPages(SharedPages&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), slot_(other.slot_) {}

SharedPages::~SharedPages() {
  if (bytes_.empty()) return;
  std::lock_guard lock(slots_mutex);
  ::munmap(bytes_.data(), bytes_.size());
  slots[slot_].begin.store(0, std::memory_order_release);
}

}  // namespace assay::capture
