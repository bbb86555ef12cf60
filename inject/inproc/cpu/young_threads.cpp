#include "inject/inproc/cpu/young_threads.h"

#include <algorithm>

#include <time.h>

#include "inject/inproc/write/profile.h"
#include "inject/inproc/cpu/thread_timers.h"
#include "inject/preload/exponential.h"

namespace assay::inproc {
namespace {

constexpr int64_t kRepaidPart = 16;  // this fraction (1/16) of the owed time is repaid at each tick

enum class Age : uint32_t { grown, young, leaving };

struct YoungThread {
  Age age;
  uint32_t session;  // `age` is about this one
  int timer;
  int64_t counted_ns;
  uint64_t random;
};
thread_local YoungThread young = {};

OwedTime owed;
std::atomic<uint32_t> session;
std::atomic<int64_t> sample_period_ns, tick_ns, most_ns, unseen_ns;

bool is_grown() {
  return young.age == Age::grown || young.session != session.load(std::memory_order_relaxed);
}

// The thread's own signal handler sees what was written before in this order.
void set_age(Age age) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  *const_cast<volatile Age*>(&young.age) = age;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The time since the last tick, if it is plausible for one tick; time beyond that could not be
// sampled.
int64_t take_new_time() {
  int64_t now_ns = thread_cpu_ns();
  int64_t used_ns = now_ns - young.counted_ns;
  young.counted_ns = now_ns;
  int64_t most = most_ns.load(std::memory_order_relaxed);
  if (used_ns <= most) return used_ns;
  unseen_ns.fetch_add(used_ns - most, std::memory_order_relaxed);
  return most;
}

}  // namespace

int64_t OwedTime::take(int64_t ns, const Rate& rate, uint64_t random) {
  int64_t before_ns = owed_ns_.load(std::memory_order_relaxed), samples = 0;
  do {
    int64_t due_ns = std::max<int64_t>(0, rate.tick_ns + before_ns / kRepaidPart);
    samples = due_ns / rate.period_ns;
    auto part = static_cast<double>(due_ns % rate.period_ns) / static_cast<double>(rate.period_ns);
    if (static_cast<double>(random >> 11) * 0x1p-53 < part) ++samples;
  } while (!owed_ns_.compare_exchange_weak(before_ns, before_ns + ns - samples * rate.period_ns,
                                           std::memory_order_relaxed));
  return samples;
}

void start_young_threads(int64_t period_ns) {
  owed.clear();
  unseen_ns.store(0);
  sample_period_ns.store(period_ns);
  tick_ns.store(kernel_tick_ns());
  most_ns.store(kMaxTicks * kernel_tick_ns());
  session.fetch_add(1);
}

bool is_known_thread() {
  return young.session == session.load(std::memory_order_relaxed);
}

bool enter_young_thread(bool is_new) {
  int64_t now_ns = thread_cpu_ns();
  set_age(Age::grown);
  young.session = session.load();
  young.timer = -1;
  young.counted_ns =
      is_new ? 0 : now_ns;  // libc's work before this point belongs to a new thread, too
  if (now_ns >= kYoungNs) return false;
  young.random = (static_cast<uint64_t>(monotonic_ns()) ^ reinterpret_cast<uintptr_t>(&young)) *
                     0x9e3779b97f4a7c15 |
                 1;
  set_age(Age::young);
  return true;
}

void set_young_timer(int timer) {
  young.timer = timer;
}

YoungTick young_tick() {
  YoungTick tick;
  if (is_grown()) return tick;
  tick.is_young = true;
  if (young.age == Age::leaving) return tick;
  OwedTime::Rate rate{sample_period_ns.load(std::memory_order_relaxed),
                      tick_ns.load(std::memory_order_relaxed)};
  tick.samples = owed.take(take_new_time(), rate, inject::next_random(young.random));
  tick.is_grown = young.counted_ns >= kYoungNs;
  if (tick.is_grown) tick.random = inject::next_random(young.random);
  tick.timer = young.timer;
  return tick;
}

void end_youth() {
  set_age(Age::grown);
}

bool leave_young_thread(bool signal_is_blocked) {
  if (is_grown()) return false;
  set_age(Age::leaving);
  int64_t used_ns = take_new_time();
  if (signal_is_blocked)
    unseen_ns.fetch_add(used_ns, std::memory_order_relaxed);
  else
    owed.add(used_ns);
  return true;
}

int64_t unseen_young_ns() {
  return unseen_ns.load();
}

}  // namespace assay::inproc
