#include "analysis/time/thread_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace assay::analysis {
namespace {

// Below this the thread's own samples are too few to divide its running time.
constexpr uint64_t kEnoughSamples = 20;
// A running thread's schedstat is brought up to date by the tick, at most 4 ms ago (HZ=250).
constexpr int64_t kReadingErrorNs = 2 * 4 * kNsPerMs;
// Where readings are 2 % or more of what they check, one thread's error says nothing.
constexpr int64_t kLongEnoughNs = 50 * kReadingErrorNs;
// A thread that ran for ten periods without being sampled once did not run (chance: e^-10).
constexpr int64_t kPeriodsToBeSeen = 10;
constexpr int64_t kUsualPeriodNs = 10 * kNsPerMs;

template <size_t N>
int64_t sum(const std::array<int64_t, N>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

}  // namespace

int64_t TimeSplit::blocked_total_ns() const {
  return sum(blocked_ns);
}

void TimeSplit::add(const TimeSplit& other) {
  wall_ns += other.wall_ns;
  user_ns += other.user_ns;
  kernel_ns += other.kernel_ns;
  runqueue_ns += other.runqueue_ns;
  idle_ns += other.idle_ns;
  for (int kind = 0; kind < kBlockKindCount; ++kind) blocked_ns[kind] += other.blocked_ns[kind];
}

ThreadTimeBuilder::ThreadTimeBuilder(const run::Contents& run, std::vector<ThreadCounters> counters,
                                     std::vector<bool> selected)
    : run_(run),
      counters_(std::move(counters)),
      selected_(std::move(selected)),
      states_(run.threads.size()) {
  counters_.resize(states_.size());
  selected_.resize(states_.size());
  model::TimeSpan window{run.info.window_begin_ns, run.info.window_end_ns};
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    state.cover = ThreadCover(run.threads[i], window);
    if (const auto& run_ns = counters_[i].run_ns) {
      state.checked = model::TimeSpan{run_ns->begin_ns, run_ns->end_ns}.within(state.cover.life());
    }
  }
}

void ThreadTimeBuilder::add_sample(const model::Sample& sample, CodeKind leaf) {
  if (sample.thread.value >= states_.size()) return;
  State& state = states_[sample.thread.value];
  ++state.samples;
  if (leaf == CodeKind::kernel) state.sampled_kernel_ns += sample.weight_ns;
  if (leaf == CodeKind::user) state.sampled_user_ns += sample.weight_ns;
}

PlacedWait ThreadTimeBuilder::add_wait(const model::Wait& wait, BlockKind kind, bool idle) {
  if (wait.thread.value >= states_.size()) return {};
  State& state = states_[wait.thread.value];
  ++state.waits;
  if (idle) ++state.idle_waits;
  CoveredWait covered = state.cover.add(wait);
  if (covered.overlap_ns > 0) {
    ++accounting_.overlapping_waits;
    accounting_.overlapping_ns += covered.overlap_ns;
  }
  const model::WaitPieces& pieces = covered.pieces;
  if (pieces.empty()) return {};
  model::TimeSpan queued = pieces.piece(model::WaitState::runqueue);
  state.off_in_check_ns += pieces.whole().within(state.checked).ns();
  state.queued_in_check_ns += queued.within(state.checked).ns();
  state.runqueue_ns += queued.ns();
  state.blocked_ns[static_cast<size_t>(BlockKind::wakeup)] += pieces.ns(model::WaitState::wakeup);
  model::TimeSpan blocked = pieces.piece(model::WaitState::blocked);
  size_t slot = idle ? kIdleSlot : static_cast<size_t>(kind);
  if (pieces.measured()) {
    state.blocked_ns[slot] += blocked.ns();
  } else {
    state.unsplit_ns[slot] += blocked.ns();
    // A wait that had not ended had no wake-up either, so it queued for no CPU.
    bool ended = !wait.has(model::WaitFlag::open_end) && blocked.end_ns == covered.whole.end_ns;
    if (ended) ++state.wakeups[slot];
  }
  if (blocked.empty()) return {};
  return {blocked.begin_ns, blocked.ns(),
          covered.is_cut() || wait.has(model::WaitFlag::open_start) ||
              wait.has(model::WaitFlag::open_end)};
}

void ThreadTimeBuilder::split_unsplit(const State& state, const ThreadCounters& counters,
                                      TimeSplit& split) const {
  for (int kind = 0; kind < kBlockKindCount; ++kind) {
    split.blocked_ns[kind] = state.blocked_ns[kind] + state.unsplit_ns[kind];
  }
  split.idle_ns = state.blocked_ns[kIdleSlot] + state.unsplit_ns[kIdleSlot];
  split.runqueue_ns = state.runqueue_ns;
  uint64_t wakeups = std::accumulate(state.wakeups.begin(), state.wakeups.end(), uint64_t{0});
  if (!counters.run_delay || wakeups == 0) return;
  int64_t span = counters.run_delay->end_ns - counters.run_delay->begin_ns;
  int64_t wall = state.cover.life().ns();
  // Readings over less than half of the thread's life say too little of the rest.
  if (span <= 0 || span < wall / 2) return;
  double scaled = static_cast<double>(counters.run_delay->by) * static_cast<double>(wall) /
                  static_cast<double>(span);
  double left = std::min(scaled - static_cast<double>(state.runqueue_ns),
                         static_cast<double>(sum(state.unsplit_ns)));
  if (left <= 0) return;
  // Each wake-up queued about equally long, however long the sleep before it. What a kind cannot
  // take is shared by the others, kinds with the shortest waits first.
  std::array<size_t, kSlots> order;
  std::iota(order.begin(), order.end(), size_t{0});
  auto mean = [&](size_t k) {
    return state.wakeups[k]
               ? static_cast<double>(state.unsplit_ns[k]) / static_cast<double>(state.wakeups[k])
               : INFINITY;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return mean(a) < mean(b); });
  for (size_t kind : order) {
    if (state.wakeups[kind] == 0 || wakeups == 0) continue;
    double fair = left * static_cast<double>(state.wakeups[kind]) / static_cast<double>(wakeups);
    int64_t taken = std::min<int64_t>(state.unsplit_ns[kind], std::llround(fair));
    (kind == kIdleSlot ? split.idle_ns : split.blocked_ns[kind]) -= taken;
    split.runqueue_ns += taken;
    left = std::max(0.0, left - static_cast<double>(taken));
    wakeups -= state.wakeups[kind];
  }
}

double ThreadTimeBuilder::kernel_share(const State& state, const ThreadCounters& counters,
                                       const State& process_sum) const {
  auto share = [](int64_t kernel, int64_t user) {
    return static_cast<double>(kernel) / static_cast<double>(kernel + user);
  };
  int64_t sampled = state.sampled_kernel_ns + state.sampled_user_ns;
  if (state.samples >= kEnoughSamples && sampled > 0) {
    return share(state.sampled_kernel_ns, state.sampled_user_ns);
  }
  if (counters.utime && counters.stime && counters.utime->by + counters.stime->by > 0) {
    return share(counters.stime->by, counters.utime->by);
  }
  if (sampled > 0) return share(state.sampled_kernel_ns, state.sampled_user_ns);
  if (process_sum.sampled_kernel_ns + process_sum.sampled_user_ns > 0) {
    return share(process_sum.sampled_kernel_ns, process_sum.sampled_user_ns);
  }
  return 0;
}

bool ThreadTimeBuilder::unseen(size_t thread) const {
  const State& state = states_[thread];
  if (state.samples > 0 || state.waits > 0) return false;
  int64_t wall = state.cover.life().ns();
  int64_t period = run_.info.sample_period_ns > 0 ? run_.info.sample_period_ns : kUsualPeriodNs;
  if (wall < kPeriodsToBeSeen * period) return false;
  const auto& ran = counters_[thread].run_ns;
  return !ran || ran->by < (ran->end_ns - ran->begin_ns) / 2;
}

void ThreadTimeBuilder::check(size_t thread) {
  const State& state = states_[thread];
  const auto& account = counters_[thread].run_ns;
  int64_t span = state.checked.ns();
  if (!account || span <= 0) return;
  int64_t error = std::abs(span - state.off_in_check_ns - account->by);
  ++accounting_.threads_checked;
  accounting_.checked_ns += span;
  accounting_.resolution_ns = kReadingErrorNs;
  error_ns_ += error;
  if (const auto& delay = counters_[thread].run_delay) {
    accounting_.queued_ns += state.queued_in_check_ns;
    accounting_.kernel_queued_ns += delay->by;
  }
  double share = static_cast<double>(error) / static_cast<double>(span);
  if (span >= kLongEnoughNs && share > accounting_.worst_share) {
    accounting_.worst_share = share;
    accounting_.worst_tid = run_.threads[thread].tid;
  }
}

TimeSplit ThreadTimeBuilder::split_of(size_t thread, const State& process_sum) {
  const State& state = states_[thread];
  TimeSplit split;
  split.wall_ns = state.cover.life().ns();
  if (unseen(thread)) {
    ++accounting_.threads_unseen;
    split.of(BlockKind::unknown) = split.wall_ns;
    return split;
  }
  check(thread);
  int64_t off = state.runqueue_ns + sum(state.blocked_ns) + sum(state.unsplit_ns);
  int64_t running = split.wall_ns - off;
  split_unsplit(state, counters_[thread], split);
  double kernel = kernel_share(state, counters_[thread], process_sum);
  split.kernel_ns =
      std::clamp<int64_t>(std::llround(static_cast<double>(running) * kernel), 0, running);
  split.user_ns = running - split.kernel_ns;
  return split;
}

ThreadTimes ThreadTimeBuilder::finish() {
  ThreadTimes times;
  std::vector<State> process_sums(run_.processes.size() + 1);  // the last: of no known process
  auto process_of = [&](size_t thread) {
    return std::min<size_t>(run_.threads[thread].process.value, run_.processes.size());
  };
  for (size_t i = 0; i < states_.size(); ++i) {
    State& process = process_sums[process_of(i)];
    process.sampled_kernel_ns += states_[i].sampled_kernel_ns;
    process.sampled_user_ns += states_[i].sampled_user_ns;
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!selected_[i]) continue;
    const model::Thread& thread = run_.threads[i];
    ThreadTime row;
    row.id = model::ThreadId{static_cast<uint32_t>(i)};
    row.tid = thread.tid;
    row.name = thread.name;
    row.pool = thread.pool.empty() ? thread.name : thread.pool;
    if (process_of(i) < run_.processes.size()) {
      row.pid = run_.processes[process_of(i)].pid;
      row.role = run_.processes[process_of(i)].role;
    }
    row.time = split_of(i, process_sums[process_of(i)]);
    row.samples = states_[i].samples;
    row.waits = states_[i].waits;
    row.idle_waits = states_[i].idle_waits;
    times.total.add(row.time);
    times.threads.push_back(std::move(row));
  }
  if (accounting_.checked_ns > 0) {
    accounting_.error_share =
        static_cast<double>(error_ns_) / static_cast<double>(accounting_.checked_ns);
  }
  times.accounting = accounting_;
  group(times);
  return times;
}

// Rows in an order that depends on the run alone: most running first, ties by identity.
void ThreadTimeBuilder::group(ThreadTimes& times) const {
  std::map<uint32_t, ProcessTime> processes;
  std::map<std::pair<uint32_t, std::string>, PoolTime> pools;
  auto process_of = [&](const ThreadTime& row) {
    return std::min<uint32_t>(run_.threads[row.id.value].process.value,
                              static_cast<uint32_t>(run_.processes.size()));
  };
  for (const ThreadTime& row : times.threads) {
    uint32_t index = process_of(row);
    ProcessTime& process = processes[index];
    if (index < run_.processes.size()) process.process = run_.processes[index];
    ++process.threads;
    process.time.add(row.time);
    PoolTime& pool = pools[{index, row.pool}];
    pool.pool = row.pool;
    ++pool.threads;
    pool.time.add(row.time);
  }
  for (auto& [key, pool] : pools) processes[key.first].pools.push_back(std::move(pool));
  std::map<uint32_t, size_t> rank;
  std::vector<std::pair<uint32_t, ProcessTime>> order(processes.begin(), processes.end());
  auto by_running = [](const auto& a, const auto& b) {
    return std::tuple(b.time.running_ns(), b.time.wall_ns) <
           std::tuple(a.time.running_ns(), a.time.wall_ns);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) { return by_running(a.second, b.second); });
  for (auto& [index, process] : order) {
    rank[index] = times.processes.size();
    std::stable_sort(process.pools.begin(), process.pools.end(), by_running);
    times.processes.push_back(std::move(process));
  }
  std::stable_sort(times.threads.begin(), times.threads.end(), [&](const auto& a, const auto& b) {
    return std::tuple(rank[process_of(a)], b.time.running_ns()) <
           std::tuple(rank[process_of(b)], a.time.running_ns());
  });
}

}  // namespace assay::analysis
