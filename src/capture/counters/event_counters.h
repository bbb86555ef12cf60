// What the scheduler and the hardware count for the target, beside its time.
//
// MigrationCounters: how often each thread changed its CPU, from /proc/PID/task/TID/sched.
// HardwareCounters: cycles, instructions, branches, caches, by process; counts of threads and
// processes that are created after the window began go to their creator. They cost time at every
// context switch, so they are read only on request. Names: docs/counters.md.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>

#include "capture/counters/counter_group.h"
#include "capture/stat/counter_set.h"
#include "os/process/procfs.h"

namespace assay::capture {

class MigrationCounters : public CounterGroup {
 public:
  MigrationCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "migrations of threads"; }
  void poll(const LiveTasks& tasks) override;
  void forget_the_gone(const LiveTasks& tasks) override;

 private:
  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  std::unordered_map<model::ThreadId, Track> threads_;
};

class HardwareCounters : public CounterGroup {
 public:
  HardwareCounters(os::CounterKernel& kernel, SeriesBook& book, Clock clock)
      : kernel_(kernel), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "hardware counters"; }
  void poll(const LiveTasks& tasks) override;

 private:
  static constexpr size_t kMostThreads = 512;  // each takes a dozen descriptors

  struct Counted {
    model::ProcessId id;
    std::unique_ptr<CounterSet> counters;
    std::unique_ptr<CounterTotals> totals;
    std::array<Track, kCounterCount> tracks;
    std::array<Track, kCounterCount> shares;
  };
  void open(const LiveTasks& tasks);
  void note(const std::string& text, const std::string& remedy);

  os::CounterKernel& kernel_;
  SeriesBook& book_;
  Clock clock_;
  bool opened_ = false;
  std::vector<Counted> processes_;
};

}  // namespace assay::capture
