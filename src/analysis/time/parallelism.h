// Parallelism: how many threads run or could run at the same moment, and how many have work.
//
// In: a run's waits and samples; then which pools serve. Out: the distribution over time. The
// window is looked at in many moments, one in each of equal parts at a place that varies, so that
// nothing periodic is met each time; a wait costs the same however long it is. A thread is active
// while it runs or waits for a CPU, and at work unless it is idle. Not thread-safe. Failures: none.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analysis/time/thread_time.h"
#include "run/reader.h"

namespace assay::analysis {

struct Parallelism {
  std::vector<double> running;  // share of the window with 0, 1, 2, … threads on a CPU
  std::vector<double> active;   // share of the window with 0, 1, 2, … threads running or ready
  std::vector<double> at_work;  // … with so many threads that are not idle
  double mean_active = 0;
  uint32_t threads = 0;       // of the serving pools, that were seen
  double busiest_thread = 0;  // its share of their running time

  bool known() const { return !active.empty(); }
  // Share of the window with at least so many.
  static double at_least(const std::vector<double>& shares, size_t count);
};

class ParallelismBuilder {
 public:
  explicit ParallelismBuilder(const run::Contents& run);
  void add_sample(const model::Sample& sample);
  void add_wait(const model::Wait& wait, bool idle);
  Parallelism finish(const std::vector<ThreadTime>& threads,
                     const std::set<std::string>& serving) const;

 private:
  static constexpr size_t kMoments = 8192;
  struct Pool {
    std::string name;
    std::vector<int32_t> inactive, queued, idle, alive;  // changes by moment
  };
  size_t first_moment(TimeNs time) const;
  void mark(std::vector<int32_t>& changes, const model::TimeSpan& span, int32_t by) const;
  void see(uint32_t thread);

  const run::Contents& run_;
  model::TimeSpan window_;
  std::vector<uint32_t> pool_of_thread_;
  std::vector<uint8_t> seen_;    // by thread
  std::vector<TimeNs> covered_;  // by thread: until here its waits were counted
  std::vector<Pool> pools_;
};

}  // namespace assay::analysis
