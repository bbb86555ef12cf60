// Counters of the machine, of the target's control groups and of Assay itself.
//
// In: /proc/stat, /proc/loadavg, /proc/meminfo, /proc/pressure, cgroup files, Assay's own clocks;
// out: points of scope host, cgroup and self. Names and units: docs/counters.md.
#pragma once

#include <map>
#include <set>
#include <string>

#include "capture/counters/counter_group.h"
#include "os/machine/cgroup.h"
#include "os/process/procfs.h"

namespace assay::capture {

class HostCounters : public CounterGroup {
 public:
  HostCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock)
      : proc_(proc), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "counters of the host"; }
  void poll(const LiveTasks& tasks) override;

 private:
  void poll_stat();
  void poll_memory_and_load();
  void poll_pressure();
  void put(const char* name, const char* unit, model::SeriesKind kind, TimeNs now, int64_t value);

  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  std::map<std::string, Track, std::less<>> tracks_;
};

class CgroupCounters : public CounterGroup {
 public:
  CgroupCounters(const os::CgroupFs& cgroups, SeriesBook& book, Clock clock)
      : cgroups_(cgroups), book_(book), clock_(std::move(clock)) {}
  const char* name() const override { return "counters of control groups"; }
  void poll(const LiveTasks& tasks) override;

 private:
  static constexpr size_t kMaxGroups = 32;
  static constexpr int kPollsBetweenLookups = 10;  // processes seldom move
  void look_up(const LiveTasks& tasks);
  void poll_cpu(const os::CgroupPlace& place, std::set<std::string>& written);
  void poll_memory(const os::CgroupPlace& place);
  void put(const char* name, const char* unit, model::SeriesKind kind, const std::string& label,
           int64_t value);

  const os::CgroupFs& cgroups_;
  SeriesBook& book_;
  Clock clock_;
  int polls_ = 0;
  size_t known_processes_ = 0;
  std::map<std::string, os::CgroupPlace> places_;  // by directory, so that each is read once
  std::map<std::string, Track> tracks_;            // by name and label
};

// Assay's own cost, stored in the same run as its measurements.
class SelfCounters : public CounterGroup {
 public:
  SelfCounters(const os::ProcFs& proc, SeriesBook& book, Clock clock, const int64_t& poller_cpu_ns)
      : proc_(proc), book_(book), clock_(std::move(clock)), poller_cpu_ns_(poller_cpu_ns) {}
  const char* name() const override { return "Assay's own cost"; }
  void poll(const LiveTasks& tasks) override;

 private:
  const os::ProcFs& proc_;
  SeriesBook& book_;
  Clock clock_;
  const int64_t& poller_cpu_ns_;
  Track cpu_, rss_, poller_;
};

}  // namespace assay::capture
