#include "inject/inproc/cpu/cpu_profiler.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/stack_walk.h"
#include "inject/inproc/locks/futex_lock.h"
#include "inject/inproc/lifecycle/keeper.h"
#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/cpu/profiling_signal.h"
#include "inject/inproc/cpu/thread_timers.h"
#include "inject/inproc/cpu/young_threads.h"

namespace assay::inproc {
namespace {

constexpr uint32_t kRowsLog2 = 16;
constexpr uint32_t kFrameWords = 4 << 20;
constexpr uint64_t kMaxEvents = 1 << 20;
// A timer reports how often it was due before its signal was delivered: once, plus some because of
// the kernel's tick. If it was due more often than a few ticks explain, the signal was blocked, and
// that time was spent in other code.
constexpr int64_t kMinMostSamples = 4;
constexpr int64_t kScanMs = 100;
constexpr int kDrainMs = 2000;
// A timer that is due at every tick, even if the thread has run only little since the last.
constexpr Rhythm kEveryTick{1, 1'000};

enum class Phase { idle, running, stopped };

struct Session {
  SampleTable table;
  CpuEvent* event_room = nullptr;
  CpuPlan plan;
  int64_t period_ns = 0, time_ns = 0, start_ns = 0;
};

FutexLock session_lock;
Session session;            // guarded by session_lock, except the members that the handler uses
Phase phase = Phase::idle;  // guarded by session_lock
ThreadTimers timers;

// Used by the handler. It reads `target` between the two changes of in_flight, so a thread that
// clears `target` and then sees in_flight at zero knows that no handler uses the table any more.
std::atomic<SampleTable*> target;
std::atomic<CpuEvent*> target_events;
std::atomic<uint64_t> event_count;
std::atomic<int64_t> target_period_ns, most_samples;
std::atomic<uint32_t> in_flight;

// Buffer for the frames that a handler finds. Not on the stack: alternate signal stacks are small
// (8 KiB in Rust's threads, of which the kernel's frame may take half).
struct Scratch {
  std::atomic<bool> taken;
  uintptr_t pcs[kMaxCpuFrames];
};
Scratch scratches[64];

Scratch* take_scratch() {
  for (Scratch& scratch : scratches) {
    bool taken = false;
    if (!scratch.taken.load(std::memory_order_relaxed) &&
        scratch.taken.compare_exchange_strong(taken, true))
      return &scratch;
  }
  return nullptr;
}

// How many samples to take of the interrupted thread here.
int64_t samples_due(SampleTable& table, const siginfo_t& info) {
  if (YoungTick tick = young_tick(); tick.is_young) {
    int64_t period_ns = target_period_ns.load(std::memory_order_relaxed);
    auto phase_ns = static_cast<int64_t>(tick.random % static_cast<uint64_t>(period_ns));
    if (tick.is_grown && set_rhythm(tick.timer, {1 + phase_ns, period_ns})) end_youth();
    return tick.samples;
  }
  int64_t count = 1 + (info.si_overrun > 0 ? info.si_overrun : 0);
  int64_t most = most_samples.load(std::memory_order_relaxed);
  if (count <= most) return count;
  table.count_dropped(static_cast<uint64_t>(count - most));
  return most;
}

void take_samples(SampleTable& table, int64_t count, const void* context) {
  Scratch* scratch = take_scratch();
  if (scratch == nullptr) return table.count_dropped(static_cast<uint64_t>(count));
  uintptr_t* pcs = scratch->pcs;
  uint32_t frames = inject::walk_interrupted(context, pcs, kMaxCpuFrames).frames;
  int64_t period_ns = target_period_ns.load(std::memory_order_relaxed);
  uint32_t row = table.add(pcs, frames, current_label(), 0, count, count * period_ns);
  scratch->taken.store(false, std::memory_order_release);
  CpuEvent* events = target_events.load(std::memory_order_relaxed);
  if (events == nullptr || row == SampleTable::kNoRow) return;
  uint64_t at = event_count.fetch_add(1, std::memory_order_relaxed);
  if (at < kMaxEvents) events[at] = {monotonic_ns(), static_cast<uint32_t>(current_tid()), row};
}

void drain() {
  timespec pause{0, 50'000};
  for (int i = 0; i < kDrainMs * 20 && in_flight.load() != 0; ++i) nanosleep(&pause, nullptr);
}

int64_t scan() {
  if (target.load() == nullptr) return kNever;
  inject::prepare_stack_walk();  // the part that cannot be done on the main thread
  int64_t before = monotonic_ns();
  timers.cover_all();
  int64_t took_ms = (monotonic_ns() - before) / 1'000'000;
  // Looking for threads may take one part in a hundred of a CPU, not more.
  return took_ms * 100 > kScanMs ? took_ms * 100 : kScanMs;
}

// Where a thread ends, by return, pthread_exit or cancellation: the destructor of this key.
pthread_key_t end_key;
std::atomic<int64_t> ended_unseen_ns;  // of threads that ended with the signal blocked
bool have_end_key;                     // guarded by session_lock while it is made

void end_thread(void*) {
  if (!cpu_profile_runs()) return;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  bool is_blocked = sigismember(&blocked, session.plan.signal) == 1;
  if (!leave_young_thread(is_blocked) && is_blocked)
    ended_unseen_ns.fetch_add(timers.unseen_ns(current_tid()), std::memory_order_relaxed);
  timers.uncover(current_tid());
}

void see_thread(bool is_new) {
  inject::prepare_stack_walk();
  if (!enter_young_thread(is_new)) return;  // it has an ordinary timer, or will get one
  if (session.plan.wall_clock) {
    end_youth();
    timers.cover(current_tid());
    return;
  }
  if (have_end_key) pthread_setspecific(end_key, &session);
  int timer = timers.cover(current_tid(), kEveryTick);
  if (timer == ThreadTimers::kNoTimer)
    end_youth();  // counted among the refused
  else
    set_young_timer(timer);
}

const char* prepare(const CpuPlan& plan) {
  if (!have_end_key) have_end_key = pthread_key_create(&end_key, end_thread) == 0;
  inject::prepare_stack_walk();
  if (!session.table.is_open() && !session.table.open(kRowsLog2, kFrameWords))
    return "no memory for samples";
  if (plan.events && session.event_room == nullptr) {
    session.event_room = static_cast<CpuEvent*>(map_pages(kMaxEvents * sizeof(CpuEvent)));
    if (session.event_room == nullptr) return "no memory for events";
  }
  session.plan = plan;
  session.plan.signal = take_profiling_signal(plan.signal);
  if (session.plan.signal == 0) return "the program uses every signal that profiling could use";
  return nullptr;
}

}  // namespace

void on_cpu_timer(const siginfo_t& info, const void* context) {
  in_flight.fetch_add(1);
  SampleTable* table = target.load();
  int64_t count = table == nullptr ? 0 : samples_due(*table, info);
  if (table != nullptr) note_thread_seen();
  if (count > 0) take_samples(*table, count, context);
  in_flight.fetch_sub(1);
}

const char* start_cpu_profile(const CpuPlan& plan) {
  Hold hold(session_lock);
  if (phase != Phase::idle) return "cpu profiling already in use";
  if (in_flight.load() != 0) return "samples of the last profile are still being taken";
  if (const char* problem = prepare(plan)) return problem;
  uint32_t hz = plan.hz == 0 ? kDefaultHz : plan.hz > kMaxHz ? kMaxHz : plan.hz;
  session.plan.hz = hz;
  session.table.clear();
  event_count = 0;
  session.period_ns = 1'000'000'000 / hz;
  session.time_ns = unix_time_ns();
  session.start_ns = monotonic_ns();
  target_period_ns = session.period_ns;
  most_samples = std::max(kMinMostSamples, kMaxTicks * kernel_tick_ns() / session.period_ns);
  target_events = plan.events ? session.event_room : nullptr;
  ended_unseen_ns = 0;
  start_young_threads(session.period_ns);
  target.store(&session.table);
  if (!timers.start({session.plan.signal, session.period_ns, plan.wall_clock})) {
    target.store(nullptr);
    return "no memory for timers";
  }
  phase = Phase::running;
  if (plan.scan && keep(scan)) wake_keeper();
  return nullptr;
}

bool stop_cpu_profile(CpuResult& result) {
  Hold hold(session_lock);
  if (phase != Phase::running) return false;
  result.threads = timers.covered();
  result.refused = timers.refused();
  // In this order: a handler may set its thread's timer again, and that timer id must not have been
  // reused by then.
  target.store(nullptr);
  drain();
  int64_t unseen_ns = timers.unseen_ns() + ended_unseen_ns.load() + unseen_young_ns();
  timers.stop();
  phase = Phase::stopped;
  result.table = &session.table;
  result.events = session.plan.events ? session.event_room : nullptr;
  uint64_t events = event_count.load();
  result.event_count = events < kMaxEvents ? events : kMaxEvents;
  result.period_ns = session.period_ns;
  result.time_ns = session.time_ns;
  result.duration_ns = monotonic_ns() - session.start_ns;
  result.lost = session.table.dropped() + static_cast<uint64_t>(unseen_ns / session.period_ns);
  result.signal = session.plan.signal;
  return true;
}

void finish_cpu_profile() {
  Hold hold(session_lock);
  if (phase == Phase::stopped) phase = Phase::idle;
}

bool cpu_profile_runs() {
  return target.load(std::memory_order_relaxed) != nullptr;
}

void cpu_profile_new_thread() {
  if (cpu_profile_runs()) see_thread(true);
}

void cpu_profile_see_thread() {
  if (cpu_profile_runs() && !is_known_thread()) see_thread(false);
}

void cpu_profile_forget() {
  session_lock.reset();
  timers.forget();
  target.store(nullptr);
  in_flight.store(0);
  for (Scratch& scratch : scratches) scratch.taken.store(false);
  phase = Phase::idle;
}

bool make_cpu_profile(const CpuResult& result, Arena& arena, Profile& profile) {
  size_t rows = 0;
  SampleRow row;
  for (uint32_t i = 0; i < result.table->rows(); ++i) rows += result.table->row(i, row);
  profile.samples = arena.array<ProfileSample>(rows + 1);
  if (profile.samples == nullptr) return false;
  for (uint32_t i = 0; i < result.table->rows() && profile.count < rows; ++i) {
    if (!result.table->row(i, row)) continue;
    ProfileSample& sample = profile.samples[profile.count++];
    sample.pcs = row.pcs;
    sample.frames = row.frames;
    sample.label = row.label;
    sample.values[0] = row.count;
    sample.values[1] = row.value;
  }
  profile.types[0] = {"samples", "count"};
  profile.types[1] = {"cpu", "nanoseconds"};
  profile.type_count = 2;
  profile.period_type = {"cpu", "nanoseconds"};
  profile.period = result.period_ns;
  profile.time_ns = result.time_ns;
  profile.duration_ns = result.duration_ns;
  profile.exact_leaf = true;
  auto* note = arena.array<char>(200);
  if (note != nullptr && (result.lost > 0 || result.refused > 0 || result.signal != SIGPROF)) {
    snprintf(note, 200, "assay: %lu samples lost, %u of %u threads without a timer, signal %d",
             static_cast<unsigned long>(result.lost), result.refused, result.threads,
             result.signal);
    profile.comments[0] = note;
  }
  return true;
}

}  // namespace assay::inproc
