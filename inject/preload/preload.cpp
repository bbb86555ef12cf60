// What happens when the library is loaded: preloaded, it opens the channel that the environment
// names. When an injector loads it, it does nothing; assay_heap_attach does the work.
#include "inject/preload/preload.h"

#include <cstdlib>
#include <cstring>

#include <sys/syscall.h>

#include "inject/core/stack_walk.h"
#include "inject/core/syscalls.h"
#include "inject/preload/channel_writer.h"
#include "inject/preload/forks.h"
#include "inject/preload/heap_sampler.h"
#include "inject/preload/tables/heap_table.h"
#include "inject/preload/hooks/mmap_hooks.h"
#include "inject/preload/hooks/operator_hooks.h"
#include "inject/preload/hooks/operator_new.h"
#include "inject/preload/hooks/real_allocator.h"
#include "inject/preload/hooks/slot_patcher.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

namespace {

constexpr uint64_t kDefaultRingBytes = 1 << 20;
constexpr size_t kMaxPath = 1024;

char channel_path[kMaxPath];  // as the environment has it; empty: none
uint64_t own_ring_bytes = kDefaultRingBytes, own_rate_bytes = kDefaultHeapRateBytes;

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = secure_getenv(name);
  if (!text || *text < '0' || *text > '9') return otherwise;
  uint64_t value = strtoull(text, nullptr, 10);
  return value ? value : otherwise;
}

// Writes `path` with %p replaced by the process id. False: there is no %p, or no room.
bool with_pid(const char* path, char (&out)[kMaxPath]) {
  const char* mark = strstr(path, "%p");
  if (!mark) return false;
  char digits[24];
  size_t count = 0;
  for (long pid = raw_syscall(SYS_getpid); pid > 0; pid /= 10)
    digits[count++] = static_cast<char>('0' + pid % 10);
  size_t before = static_cast<size_t>(mark - path), after = strlen(mark + 2);
  if (before + count + after >= kMaxPath) return false;
  memcpy(out, path, before);
  for (size_t i = 0; i < count; ++i) out[before + i] = digits[count - 1 - i];
  memcpy(out + before + count, mark + 2, after + 1);
  return true;
}

void open_channel() {
  char own[kMaxPath];
  bool opened = with_pid(channel_path, own)
                    ? channel_writer.create(own, own_ring_bytes, own_rate_bytes)
                    : channel_writer.open_path(channel_path);
  if (!opened) return;
  set_mmap_sampling(channel_writer.wants_mmap());
  channel_writer.set_ready(1);
}

__attribute__((constructor)) void start() {
  const char* path = secure_getenv("ASSAY_HEAP_CHANNEL");
  if (!path || strlen(path) >= kMaxPath) return;
  bool has_own_allocator = is_allocator_in_program();
  if (!has_own_allocator && !is_interposed()) return;  // loaded late, by an injector
  memcpy(channel_path, path, strlen(path) + 1);
  own_ring_bytes = number_from("ASSAY_HEAP_RING", kDefaultRingBytes);
  own_rate_bytes = number_from("ASSAY_HEAP_RATE", kDefaultHeapRateBytes);
  thread_state.is_busy = true;
  resolve_real_allocator();
  find_operator_new();
  prepare_stack_walk();
  HookList operators = find_operator_hooks();  // such calls do not pass through malloc
  if (operators.count) patch_slots({&operators, 1});
  follow_forks();
  open_channel();
  if (has_own_allocator) channel_writer.set_problem(HeapProblem::static_allocator);
  thread_state.is_busy = false;
  thread_state.bytes_left = 0;  // check again at the next allocation
}

}  // namespace

bool open_named_channel() {
  char own[kMaxPath];
  if (!with_pid(channel_path, own)) return false;
  open_channel();
  return true;
}

}  // namespace assay::inject
