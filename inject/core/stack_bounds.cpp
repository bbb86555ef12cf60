#include "inject/core/stack_bounds.h"

#include <atomic>
#include <cstring>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/core/syscalls.h"

extern "C" void* __libc_stack_end;  // the dynamic linker's: sp at the program's first instruction

namespace assay::inject {

namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr size_t kDescriptorBytes = 2048;        // how far into the thread's descriptor to look
constexpr uintptr_t kMaxMainStack = 128u << 20;  // the kernel keeps at least this free for it
constexpr int kMaxAttempts = 8;  // to learn the layout: more attempts do not help with another libc
constexpr uint32_t kMapReadsPerSecond = 200;

std::atomic<uint32_t> stack_field{0};  // offset of {stack block, its size} in the descriptor

uintptr_t thread_pointer() {
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
}

uintptr_t main_stack_bytes() {
  static std::atomic<uintptr_t> known{0};
  uintptr_t bytes = known.load(std::memory_order_relaxed);
  if (bytes) return bytes;
  rlimit64 limit{};
  long failed =
      raw_syscall(SYS_prlimit64, 0, RLIMIT_STACK, 0, reinterpret_cast<long>(&limit), 0, 0);
  bytes = is_error(failed) || limit.rlim_cur > kMaxMainStack ? kMaxMainStack : limit.rlim_cur;
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

// One line at a time of /proc/self/maps: only the two addresses matter.
class MapsReader {
 public:
  MapsReader()
      : fd_(raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"),
                        O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (!is_error(fd_)) raw_syscall(SYS_close, fd_);
  }
  bool next(StackBounds& out) {
    out = {};
    return number(out.low, '-') && number(out.high, ' ') && skip_line();
  }

 private:
  int get() {
    if (at_ == end_) {
      if (is_error(fd_)) return -1;
      long got = raw_syscall(SYS_read, fd_, reinterpret_cast<long>(buffer_), sizeof buffer_);
      if (got <= 0) return -1;
      at_ = 0, end_ = static_cast<size_t>(got);
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  bool number(uintptr_t& out, int stop) {
    for (int c = get(); c != stop; c = get()) {
      if (c >= '0' && c <= '9') {
        out = out * 16 + static_cast<uintptr_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        out = out * 16 + static_cast<uintptr_t>(c - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }
  bool skip_line() {
    for (int c = get(); c != '\n'; c = get()) {
      if (c < 0) return false;
    }
    return true;
  }

  long fd_;
  size_t at_ = 0, end_ = 0;
  char buffer_[1024];  // on the stack of any thread, however small
};

// A program that switches stacks all the time must not read a file each time.
bool may_read_maps() {
  static std::atomic<int64_t> second{0};
  static std::atomic<uint32_t> reads{0};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (second.load(std::memory_order_relaxed) != now.tv_sec) {
    second.store(now.tv_sec, std::memory_order_relaxed);
    reads.store(0, std::memory_order_relaxed);
  }
  return reads.fetch_add(1, std::memory_order_relaxed) < kMapReadsPerSecond;
}

StackBounds stack_in_maps(uintptr_t sp) {
  if (!may_read_maps()) return {};
  MapsReader maps;
  for (StackBounds line; maps.next(line);) {
    if (line.holds(sp)) return line;
  }
  return {};
}

StackBounds stack_of_descriptor(uintptr_t sp) {
  uint32_t field = stack_field.load(std::memory_order_relaxed);
  if (field == 0) return {};
  uintptr_t self = thread_pointer();
  uintptr_t words[2];
  std::memcpy(words, reinterpret_cast<const void*>(self + field), sizeof words);
  // The descriptor itself lies at the top of its stack block.
  if (words[0] == 0 || self < words[0] || self - words[0] >= words[1] || sp < words[0] ||
      sp >= self)
    return {};
  return {words[0], self, true};
}

// The kernel knows the stack that a signal handler runs on.
StackBounds signal_stack(uintptr_t sp) {
  stack_t stack{};
  if (is_error(raw_syscall(SYS_sigaltstack, 0, reinterpret_cast<long>(&stack)))) return {};
  uintptr_t low = reinterpret_cast<uintptr_t>(stack.ss_sp);
  if ((stack.ss_flags & SS_DISABLE) || sp < low || sp - low >= stack.ss_size) return {};
  return {low, low + stack.ss_size};
}

}  // namespace

StackBounds find_stack(uintptr_t sp) {
  uintptr_t end = reinterpret_cast<uintptr_t>(__libc_stack_end);
  if (sp < end && end - sp < main_stack_bytes()) return {sp, end + sizeof(uintptr_t), true};
  StackBounds found = stack_of_descriptor(sp);
  if (!found.high) found = signal_stack(sp);
  return found.high ? found : stack_in_maps(sp);
}

bool learn_thread_layout() {
#if defined(__x86_64__)
  if (stack_field.load(std::memory_order_relaxed)) return true;
  if (raw_syscall(SYS_gettid) == raw_syscall(SYS_getpid)) return false;  // its stack is no block
  static std::atomic<int> attempts{0};
  if (attempts.fetch_add(1, std::memory_order_relaxed) >= kMaxAttempts) return false;
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  uintptr_t top = reinterpret_cast<uintptr_t>(low) + bytes;
  uintptr_t self = thread_pointer();
  if (self < reinterpret_cast<uintptr_t>(low) || self >= top) return false;
  for (size_t field = 0; field + 16 <= kDescriptorBytes && self + field + 16 <= top; field += 8) {
    uintptr_t words[2];
    std::memcpy(words, reinterpret_cast<const void*>(self + field), sizeof words);
    // The block begins at or (by its guard) below the usable stack and ends where that ends.
    bool fits = words[0] && words[0] % kPageBytes == 0 &&
                words[0] <= reinterpret_cast<uintptr_t>(low) && words[0] + words[1] == top;
    if (!fits) continue;
    stack_field.store(static_cast<uint32_t>(field), std::memory_order_relaxed);
    return true;
  }
#endif
  return false;
}

}  // namespace assay::inject
