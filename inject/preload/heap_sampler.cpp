#include "inject/preload/heap_sampler.h"

#include <atomic>
#include <cerrno>

#include <sys/syscall.h>
#include <time.h>

#include "inject/core/stack_walk.h"
#include "inject/core/syscalls.h"
#include "inject/preload/attach_internal.h"
#include "inject/preload/channel_writer.h"
#include "inject/preload/exponential.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/hooks/operator_new.h"
#include "inject/preload/sample_budget.h"
#include "inject/preload/tables/site_table.h"
#include "inject/preload/thread_state.h"

namespace assay::inject {

constinit thread_local ThreadState thread_state;

namespace {

constinit SampleBudget budget;

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The smaller of the rates that channel and table request; 0: neither is on.
uint64_t wanted_rate() {
  uint64_t channel = channel_writer.is_open() ? channel_writer.wanted_rate() : 0,
           table = site_table_rate();
  uint64_t wanted = channel == 0 || (table != 0 && table < channel) ? table : channel;
  return wanted ? budget.raised(wanted) : 0;
}

uint32_t own_tid(ThreadState& thread) {
  uint32_t pid = static_cast<uint32_t>(raw_syscall(SYS_getpid));
  if (thread.pid != pid) {
    thread.pid = pid;
    thread.tid = static_cast<uint32_t>(raw_syscall(SYS_gettid));
  }
  return thread.tid;
}

uint64_t draw(ThreadState& thread, uint64_t rate_bytes) {
  if (thread.random == 0) {
    static std::atomic<uint64_t> threads{0};
    uint64_t seed = now_ns() ^ reinterpret_cast<uintptr_t>(&thread);
    seed = (seed ^ threads.fetch_add(1, std::memory_order_relaxed) << 32) * 0x9e3779b97f4a7c15;
    thread.random = seed ? seed : 1;
    next_random(thread.random);
  }
  return draw_interval(thread.random, rate_bytes);
}

void tell_free(const void* at, const LiveEntry& entry, ThreadState& thread) {
  if (entry.site) add_free(entry);
  if (channel_writer.is_open())
    channel_writer.write_free(now_ns(), reinterpret_cast<uintptr_t>(at), own_tid(thread));
}

void record(void* at, size_t bytes, HeapFunction function, const void* caller,
            ThreadState& thread) {
  if (!live_table.prepare()) {
    channel_writer.set_problem(HeapProblem::no_memory);
    return;
  }
  prepare_stack_walk();  // learns once, on the first sampled thread that is not the main one
  uintptr_t pcs[kMaxHeapFrames + 4];
  WalkResult walk = walk_above(caller, pcs, kMaxHeapFrames + 4);
  uint32_t skipped = operator_new_frames(pcs, walk.frames);
  if (skipped) function = HeapFunction::operator_new;
  uint32_t frames = walk.frames - skipped;
  bool is_complete = walk.complete && frames <= kMaxHeapFrames;
  if (frames > kMaxHeapFrames) frames = kMaxHeapFrames;

  LiveEntry entry{bytes, thread.rate_bytes, nullptr}, stale;
  if (site_table_rate())
    entry.site = find_site(pcs + skipped, frames, is_complete, current_label_id());
  // It was freed without passing a hook (by a pointer to free) and allocated again.
  if (live_table.may_hold(at) && live_table.take(at, stale)) tell_free(at, stale, thread);
  bool is_live = live_table.insert(at, entry);
  if (!is_live) channel_writer.count_dropped_live();
  AllocSample sample{now_ns(),        reinterpret_cast<uintptr_t>(at),
                     bytes,           thread.rate_bytes,
                     own_tid(thread), function,
                     is_complete,     pcs + skipped,
                     frames};
  bool told = channel_writer.is_open() && channel_writer.write_alloc(sample);
  if (entry.site) add_allocation(entry);
  if (!is_live) {
    tell_free(at, entry, thread);  // counted, because its free could not be seen later
  } else if (!told && !entry.site) {
    live_table.take(at, stale);
  }
}

// Marks the thread busy and preserves errno during the object's lifetime.
class Busy {
 public:
  explicit Busy(ThreadState& thread) : thread_(thread), errno_(errno) { thread_.is_busy = true; }
  ~Busy() {
    thread_.is_busy = false;
    errno = errno_;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ThreadState& thread_;
  int errno_;
};

}  // namespace

void look_at_allocation(void* at, size_t bytes, HeapFunction function, const void* caller) {
  ThreadState& thread = thread_state;
  if (!at || thread.is_busy) return;
  if (thread.is_probe) {
    thread.is_probe = false;
    return;
  }
  Busy busy(thread);
  rescan_if_due();
  uint64_t rate = wanted_rate();
  if (rate == 0) {
    thread.rate_bytes = 0;
    thread.bytes_left = kIdleBytes;
    return;
  }
  if (thread.rate_bytes == 0) {  // the first check since sampling is on: this allocation counts too
    thread.rate_bytes = rate;
    thread.bytes_left = draw(thread, rate);
    if (bytes <= thread.bytes_left) {
      thread.bytes_left -= bytes;
      return;
    }
  }
  record(at, bytes, function, caller, thread);
  budget.spend(now_ns(), channel_writer.max_samples_per_core());
  thread.rate_bytes = wanted_rate();
  thread.bytes_left = thread.rate_bytes ? draw(thread, thread.rate_bytes) : kIdleBytes;
}

void sample_allocation(void* at, size_t bytes, HeapFunction function, const void* caller) {
  ThreadState& thread = thread_state;
  if (!at || thread.is_busy) return;
  Busy busy(thread);
  uint64_t in_force = thread.rate_bytes;
  if (in_force == 0) thread.rate_bytes = wanted_rate();
  if (thread.rate_bytes != 0) record(at, bytes, function, caller, thread);
  thread.rate_bytes = in_force;
}

bool forget_sample(void* at, LiveEntry& out) {
  ThreadState& thread = thread_state;
  if (thread.is_busy) return false;
  Busy busy(thread);
  if (!live_table.take(at, out)) return false;
  tell_free(at, out, thread);
  return true;
}

void look_at_free(void* at) {
  LiveEntry entry;
  forget_sample(at, entry);
}

void forget_live_samples() {
  live_table.take_all([](uint64_t, const LiveEntry&) {});
}

}  // namespace assay::inject
