#include "analysis/time/parallelism.h"

#include <algorithm>
#include <map>

#include "model/time/wait_pieces.h"

namespace assay::analysis {
namespace {

constexpr size_t kMostThreads = 64;  // more of them at once are counted as so many

void add_up(std::vector<double>& shares, int64_t threads) {
  auto count = static_cast<size_t>(std::clamp<int64_t>(threads, 0, kMostThreads));
  if (shares.size() <= count) shares.resize(count + 1);
  ++shares[count];
}

}  // namespace

double Parallelism::at_least(const std::vector<double>& shares, size_t count) {
  double sum = 0;
  for (size_t i = count; i < shares.size(); ++i) sum += shares[i];
  return sum;
}

ParallelismBuilder::ParallelismBuilder(const run::Contents& run)
    : run_(run),
      window_{run.info.window_begin_ns, run.info.window_end_ns},
      seen_(run.threads.size()),
      covered_(run.threads.size(), run.info.window_begin_ns) {
  std::map<std::string, uint32_t> known;
  for (const model::Thread& thread : run.threads) {
    auto [it, added] = known.try_emplace(thread.pool, static_cast<uint32_t>(pools_.size()));
    if (added) pools_.emplace_back().name = thread.pool;
    pool_of_thread_.push_back(it->second);
  }
}

// The first moment that does not lie before the time. Moment i lies in part i of the window, at a
// place that the golden ratio chooses.
size_t ParallelismBuilder::first_moment(TimeNs time) const {
  double part = static_cast<double>(window_.ns()) / static_cast<double>(kMoments);
  double at = static_cast<double>(time - window_.begin_ns) / part;
  if (at <= 0) return 0;
  if (at >= static_cast<double>(kMoments)) return kMoments;
  auto cell = static_cast<size_t>(at);
  double place = static_cast<double>(cell) * 0.6180339887498949;
  place -= static_cast<double>(static_cast<int64_t>(place));
  return at - static_cast<double>(cell) <= place ? cell : cell + 1;
}

void ParallelismBuilder::mark(std::vector<int32_t>& changes, const model::TimeSpan& span,
                              int32_t by) const {
  model::TimeSpan inside = span.within(window_);
  if (inside.empty()) return;
  if (changes.empty()) changes.resize(kMoments + 1);
  changes[first_moment(inside.begin_ns)] += by;
  changes[first_moment(inside.end_ns)] -= by;
}

void ParallelismBuilder::see(uint32_t thread) {
  if (seen_[thread]) return;
  seen_[thread] = 1;
  const model::Thread& one = run_.threads[thread];
  mark(pools_[pool_of_thread_[thread]].alive, {one.begin_ns, one.end_ns}, 1);
}

void ParallelismBuilder::add_sample(const model::Sample& sample) {
  if (sample.thread.value < seen_.size()) see(sample.thread.value);
}

void ParallelismBuilder::add_wait(const model::Wait& wait, bool idle) {
  uint32_t thread = wait.thread.value;
  if (thread >= seen_.size() || window_.empty()) return;
  see(thread);
  model::WaitPieces pieces(wait);
  // A thread has one state at a time: what earlier waits cover is left out.
  model::TimeSpan left{covered_[thread], window_.end_ns};
  covered_[thread] = std::max(covered_[thread], pieces.whole().end_ns);
  Pool& pool = pools_[pool_of_thread_[thread]];
  mark(pool.queued, pieces.piece(model::WaitState::runqueue).within(left), 1);
  if (model::waits_for_cpu_only(wait)) return;
  model::TimeSpan asleep{pieces.piece(model::WaitState::blocked).begin_ns,
                         pieces.piece(model::WaitState::wakeup).end_ns};
  mark(pool.inactive, asleep.within(left), 1);
  if (idle) mark(pool.idle, asleep.within(left), 1);
}

Parallelism ParallelismBuilder::finish(const std::vector<ThreadTime>& threads,
                                       const std::set<std::string>& serving) const {
  Parallelism found;
  int64_t running_ns = 0, most_ns = 0;
  for (const ThreadTime& thread : threads) {
    if (!serving.contains(thread.pool) || thread.samples + thread.waits == 0) continue;
    ++found.threads;
    running_ns += thread.time.running_ns();
    most_ns = std::max(most_ns, thread.time.running_ns());
  }
  if (found.threads == 0 || running_ns <= 0 || window_.empty()) return {};
  found.busiest_thread = static_cast<double>(most_ns) / static_cast<double>(running_ns);
  int64_t alive = 0, inactive = 0, queued = 0, idle = 0;
  for (size_t moment = 0; moment < kMoments; ++moment) {
    for (const Pool& pool : pools_) {
      if (!serving.contains(pool.name)) continue;
      if (!pool.alive.empty()) alive += pool.alive[moment];
      if (!pool.inactive.empty()) inactive += pool.inactive[moment];
      if (!pool.queued.empty()) queued += pool.queued[moment];
      if (!pool.idle.empty()) idle += pool.idle[moment];
    }
    add_up(found.running, alive - inactive - queued);
    add_up(found.active, alive - inactive);
    add_up(found.at_work, alive - idle);
    found.mean_active += static_cast<double>(std::max<int64_t>(0, alive - inactive)) / kMoments;
  }
  for (double& share : found.running) share /= kMoments;
  for (double& share : found.active) share /= kMoments;
  for (double& share : found.at_work) share /= kMoments;
  return found;
}

}  // namespace assay::analysis
