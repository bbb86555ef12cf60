#include "inject/inproc/cpu/sleeping_thread.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject/core/stack_walk.h"
#include "inject/inproc/write/byte_buffer.h"

namespace assay::inproc {
namespace {

constexpr size_t kCopyBytes = 128 << 10;
constexpr uint32_t kMaxFrames = 192;

// Cuts the last word off.
uintptr_t last_number(char* text) {
  char* space = std::strrchr(text, ' ');
  if (space == nullptr) return 0;
  *space = 0;
  return std::strtoull(space + 1, nullptr, 16);
}

// "NUMBER ARGUMENTS… SP PC" of a sleeping thread, "running" of another.
bool parse(char* text, SleepingThread& out) {
  out.pc = last_number(text);
  out.sp = last_number(text);
  char* arguments = nullptr;
  out.call = std::strtol(text, &arguments, 10);
  out.first_argument = std::strtoull(arguments, nullptr, 16);
  return out.pc != 0 && out.sp != 0;
}

bool is_same(const SleepingThread& a, const SleepingThread& b) {
  return a.call == b.call && a.pc == b.pc && a.sp == b.sp;
}

// What can be read from `at` on, up to kCopyBytes.
size_t copy_memory(uintptr_t at, char* to) {
  iovec into{to, kCopyBytes}, from{reinterpret_cast<void*>(at), kCopyBytes};
  long got = syscall(SYS_process_vm_readv, getpid(), &into, 1, &from, 1, 0);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

}  // namespace

bool SleepingThread::is_ended_by_signals() const {
  switch (call) {
#ifdef SYS_pause
    case SYS_pause:
#endif
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return true;
    default:
      return false;
  }
}

bool find_sleeping_thread(int tid, SleepingThread& out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
  ByteBuffer text;
  if (!read_whole_file(path, text)) return false;
  text.append("", 1);
  out.tid = tid;
  return parse(text.data(), out);
}

uint32_t walk_sleeping_thread(const SleepingThread& thread, Arena& arena, const uintptr_t*& pcs) {
  ByteBuffer copy;
  auto* found = arena.array<uintptr_t>(kMaxFrames);
  if (found == nullptr || !copy.reserve(kCopyBytes)) return 0;
  size_t bytes = copy_memory(thread.sp - inject::kRedZoneBytes, copy.end());
  SleepingThread after;
  if (!find_sleeping_thread(thread.tid, after) || !is_same(thread, after)) return 0;
  pcs = found;
  return inject::walk_copy(thread.pc, thread.sp, copy.end(), bytes, found, kMaxFrames).frames;
}

}  // namespace assay::inproc
