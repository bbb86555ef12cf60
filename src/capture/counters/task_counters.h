// The kernel's counters of each thread and process of the target.
//
// Three groups, because they differ in cost: schedstat of threads (one small file, exact), the rest
// of threads (stat and status), and processes (stat, status, io, number of open files). Points
// carry the time of their own read. Names and units: docs/counters.md.
#pragma once

#include <array>
#include <unordered_map>

#include "capture/counters/counter_group.h"
#include "os/process/procfs.h"

namespace assay::capture {

class SchedCounters : public CounterGroup {
 public:
  SchedCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "run and run-queue time of threads"; }
  void poll(const LiveTasks& tasks) override;
  void forget_the_gone(const LiveTasks& tasks) override;

 private:
  using Tracks = std::array<Track, 3>;
  void poll_thread(const LiveThread& thread);
  void poll_from_ticks(const LiveThread& thread);
  bool accounting_is_off(const LiveThread& thread) const;

  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  bool no_schedstat_ = false;  // this kernel keeps none: ticks instead
  std::unordered_map<model::ThreadId, Tracks> threads_;
};

class ThreadCounters : public CounterGroup {
 public:
  ThreadCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "CPU time, faults and switches of threads"; }
  void poll(const LiveTasks& tasks) override;
  void forget_the_gone(const LiveTasks& tasks) override;

 private:
  using Tracks = std::array<Track, 6>;
  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  std::unordered_map<model::ThreadId, Tracks> threads_;
};

class ProcessCounters : public CounterGroup {
 public:
  ProcessCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "CPU time, memory and I/O of processes"; }
  void poll(const LiveTasks& tasks) override;
  void forget_the_gone(const LiveTasks& tasks) override;

 private:
  using Tracks = std::array<Track, 10>;
  void poll_io(const LiveProcess& process, Tracks& tracks);

  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  bool io_note_given_ = false;
  std::unordered_map<model::ProcessId, Tracks> processes_;
};

// Counting open files walks the whole table before Linux 6.2: rare, with a budget of its own.
class OpenFileCounters : public CounterGroup {
 public:
  OpenFileCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "open files of processes"; }
  void poll(const LiveTasks& tasks) override;
  void forget_the_gone(const LiveTasks& tasks) override;

 private:
  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  std::unordered_map<model::ProcessId, std::array<Track, 1>> processes_;
};

}  // namespace assay::capture
