#include "capture/counters/machine_counters.h"

#include <array>
#include <cmath>
#include <ctime>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "os/text_fields.h"

namespace assay::capture {
namespace {

using model::SeriesKind;
using model::SeriesScope;

constexpr int64_t kMilli = 1'000;
constexpr double kLargestQuota = 1e9;  // CPUs; keeps the number an integer whatever a file says
constexpr uint64_t kBytesPerKib = 1'024;

int64_t scaled(uint64_t value, int64_t factor) {
  int64_t result = 0;
  return __builtin_mul_overflow(value, factor, &result) ? INT64_MAX : result;
}

}  // namespace

void HostCounters::put(const char* name, const char* unit, SeriesKind kind, TimeNs now,
                       int64_t value) {
  auto found = tracks_.find(name);
  if (found == tracks_.end()) found = tracks_.emplace(name, Track{}).first;
  book_.put(found->second, {SeriesScope::host, kind, name, unit}, 0, "", now, value);
}

void HostCounters::poll(const LiveTasks&) {
  poll_stat();
  poll_memory_and_load();
  poll_pressure();
}

void HostCounters::poll_stat() {
  constexpr std::array kStates{"cpu_user",   "cpu_nice", "cpu_system",  "cpu_idle",
                               "cpu_iowait", "cpu_irq",  "cpu_softirq", "cpu_steal"};
  static const int64_t ns_per_tick = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  auto text = proc_.read("stat");
  if (!text) return;
  TimeNs now = clock_();
  auto words = os::split_words(os::field_after(*text, "cpu"));  // the sum of all CPUs
  for (size_t i = 0; i < kStates.size() && i < words.size(); ++i) {
    auto ticks = os::parse_u64(words[i]);
    if (ticks) put(kStates[i], "ns", SeriesKind::cumulative, now, scaled(*ticks, ns_per_tick));
  }
  if (auto switches = os::parse_u64(os::field_after(*text, "ctxt"))) {
    put("context_switches", "count", SeriesKind::cumulative, now, to_value(*switches));
  }
  if (auto forks = os::parse_u64(os::field_after(*text, "processes"))) {
    put("forks", "count", SeriesKind::cumulative, now, to_value(*forks));
  }
  if (auto running = os::parse_u64(os::field_after(*text, "procs_running"))) {
    put("runnable", "count", SeriesKind::gauge, now, to_value(*running));
  }
  if (auto blocked = os::parse_u64(os::field_after(*text, "procs_blocked"))) {
    put("blocked_on_disk", "count", SeriesKind::gauge, now, to_value(*blocked));
  }
}

void HostCounters::poll_memory_and_load() {
  if (auto text = proc_.read("loadavg")) {
    auto words = os::split_words(*text);
    // "0.52": two digits after the point, so the number without its point is hundredths.
    std::string digits = words.empty() ? "" : std::string(words[0]);
    std::erase(digits, '.');
    auto hundredths = os::parse_u64(digits);
    if (hundredths) put("load_1m", "milli", SeriesKind::gauge, clock_(), scaled(*hundredths, 10));
  }
  if (auto text = proc_.read("meminfo")) {
    std::string_view value = os::field_after(*text, "MemAvailable");
    auto kib = os::parse_u64(value.substr(0, value.find(' ')));
    if (kib)
      put("memory_available", "bytes", SeriesKind::gauge, clock_(), scaled(*kib, kBytesPerKib));
  }
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", total in µs
void HostCounters::poll_pressure() {
  static constexpr struct {
    const char* file;
    const char* key;
    const char* name;
  } kPressures[] = {{"pressure/cpu", "some", "psi_cpu_some"},
                    {"pressure/io", "some", "psi_io_some"},
                    {"pressure/io", "full", "psi_io_full"},
                    {"pressure/memory", "some", "psi_memory_some"},
                    {"pressure/memory", "full", "psi_memory_full"}};
  for (const auto& pressure : kPressures) {
    auto text = proc_.read(pressure.file);
    if (!text) continue;
    std::string_view line = os::field_after(*text, pressure.key);
    size_t total = line.find("total=");
    if (total == line.npos) continue;
    auto us = os::parse_u64(line.substr(total + 6));
    if (us) put(pressure.name, "ns", SeriesKind::cumulative, clock_(), scaled(*us, kNsPerUs));
  }
}

void CgroupCounters::put(const char* name, const char* unit, SeriesKind kind,
                         const std::string& label, int64_t value) {
  Track& track = tracks_[fmt::format("{} {}", name, label)];
  book_.put(track, {SeriesScope::cgroup, kind, name, unit}, 0, label, clock_(), value);
}

void CgroupCounters::look_up(const LiveTasks& tasks) {
  places_.clear();
  known_processes_ = tasks.processes.size();
  for (const LiveProcess& process : tasks.processes) {
    if (places_.size() >= kMaxGroups) return;
    auto place = cgroups_.find(process.pid);
    if (place) places_.emplace(place->cpu.dir + " " + place->memory.dir, std::move(*place));
  }
}

void CgroupCounters::poll(const LiveTasks& tasks) {
  bool changed = tasks.processes.size() != known_processes_;
  if (polls_++ % kPollsBetweenLookups == 0 || changed) look_up(tasks);
  // Two places may share a parent with a quota, or a memory group: each is written once per poll.
  std::set<std::string> written;
  for (const auto& [directories, place] : places_) {
    if (written.insert("cpu " + place.cpu.dir).second) poll_cpu(place, written);
    if (written.insert("memory " + place.memory.dir).second) poll_memory(place);
  }
}

void CgroupCounters::poll_cpu(const os::CgroupPlace& place, std::set<std::string>& written) {
  if (auto usage = cgroups_.usage_ns(place)) {
    put("usage", "ns", SeriesKind::cumulative, place.cpuacct.path, *usage);
  }
  for (const os::CgroupCpuLevel& level : cgroups_.cpu_levels(place)) {
    if (!written.insert("level " + level.path).second) continue;
    put("periods", "count", SeriesKind::cumulative, level.path, to_value(level.stat.periods));
    put("throttled_periods", "count", SeriesKind::cumulative, level.path,
        to_value(level.stat.throttled_periods));
    put("throttled", "ns", SeriesKind::cumulative, level.path, level.stat.throttled_ns);
    if (!level.quota_cpus) continue;
    int64_t quota = std::llround(std::min(*level.quota_cpus, kLargestQuota) * kMilli);
    put("quota", "milli", SeriesKind::gauge, level.path, quota);
  }
}

void CgroupCounters::poll_memory(const os::CgroupPlace& place) {
  if (auto bytes = cgroups_.memory_bytes(place)) {
    put("memory", "bytes", SeriesKind::gauge, place.memory.path, to_value(*bytes));
  }
  if (auto limit = cgroups_.limits(place).memory_bytes) {
    put("memory_limit", "bytes", SeriesKind::gauge, place.memory.path, to_value(*limit));
  }
}

void SelfCounters::poll(const LiveTasks&) {
  timespec cpu{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  TimeNs now = clock_();
  book_.put(cpu_, {SeriesScope::self, SeriesKind::cumulative, "cpu", "ns"}, 0, "", now,
            cpu.tv_sec * kNsPerSecond + cpu.tv_nsec);
  book_.put(poller_, {SeriesScope::self, SeriesKind::cumulative, "counters_cpu", "ns"}, 0, "", now,
            poller_cpu_ns_);
  if (auto status = proc_.status(::getpid())) {
    book_.put(rss_, {SeriesScope::self, SeriesKind::gauge, "rss", "bytes"}, 0, "", clock_(),
              to_value(status->rss_bytes));
  }
}

}  // namespace assay::capture
