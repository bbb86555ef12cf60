#include "capture/counters/event_counters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "os/text_fields.h"

namespace assay::capture {
namespace {

using model::SeriesKind;
using model::SeriesScope;

constexpr SeriesSpec kMigrations{SeriesScope::thread, SeriesKind::cumulative, "migrations",
                                 "count"};

// Series names of hardware events, by CounterId; null: not hardware, polled elsewhere.
constexpr std::array<const char*, kCounterCount> kNames{
    nullptr,        nullptr,     nullptr,         nullptr,           nullptr,          "cycles",
    "instructions", "branches",  "branch_misses", "frontend_stalls", "backend_stalls", "l1d_loads",
    "l1d_misses",   "llc_loads", "llc_misses",    "dtlb_loads",      "dtlb_misses"};

}  // namespace

void MigrationCounters::poll(const LiveTasks& tasks) {
  for (const LiveThread& thread : tasks.threads) {
    auto text = proc_.read(fmt::format("{}/task/{}/sched", thread.pid, thread.tid));
    if (!text) continue;
    size_t at = text->find("nr_migrations");
    if (at == text->npos) continue;
    std::string_view line = std::string_view(*text).substr(at, text->find('\n', at) - at);
    size_t colon = line.find(':');
    if (colon == line.npos) continue;
    auto count = os::parse_u64(line.substr(colon + 1));
    if (count)
      book_.put(threads_[thread.id], kMigrations, thread.id.value, "", clock_(), to_value(*count));
  }
}

void MigrationCounters::forget_the_gone(const LiveTasks& tasks) {
  std::unordered_set<model::ThreadId> alive;
  for (const LiveThread& thread : tasks.threads) alive.insert(thread.id);
  for (auto entry = threads_.begin(); entry != threads_.end();) {
    if (alive.contains(entry->first)) {
      ++entry;
      continue;
    }
    book_.settle(entry->second);
    entry = threads_.erase(entry);
  }
}

void HardwareCounters::note(const std::string& text, const std::string& remedy) {
  book_.sink().add_note({"hardware counters", text, remedy});
}

void HardwareCounters::open(const LiveTasks& tasks) {
  opened_ = true;
  if (tasks.threads.size() > kMostThreads) {
    note(fmt::format("not counted: {} threads are more than can be counted one by one",
                     tasks.threads.size()),
         "");
    return;
  }
  std::string problem;
  for (const LiveProcess& process : tasks.processes) {
    std::vector<pid_t> tids;
    for (const LiveThread& thread : tasks.threads) {
      if (thread.pid == process.pid) tids.push_back(thread.tid);
    }
    Counted counted;
    counted.id = process.id;
    counted.counters = std::make_unique<CounterSet>(kernel_);
    if (!counted.counters->open(tids, CounterSet::Which::hardware)) {
      if (problem.empty()) problem = counted.counters->problem(CounterId::cycles);
      continue;
    }
    counted.totals = std::make_unique<CounterTotals>(*counted.counters);
    processes_.push_back(std::move(counted));
  }
  if (processes_.empty()) note("not counted: " + problem, "");
}

void HardwareCounters::poll(const LiveTasks& tasks) {
  if (!opened_) open(tasks);
  for (Counted& process : processes_) {
    const Counts& counts = process.totals->advance();
    TimeNs now = clock_();
    for (size_t i = 0; i < counts.size(); ++i) {
      if (kNames[i] == nullptr || !counts[i].counted) continue;
      SeriesSpec spec{SeriesScope::process, SeriesKind::cumulative, kNames[i], "count"};
      book_.put(process.tracks[i], spec, process.id.value, "", now,
                static_cast<int64_t>(std::llround(counts[i].value)));
      // Share of the time since the last read in which it counted, in thousandths; the value is
      // scaled.
      SeriesSpec share{SeriesScope::process, SeriesKind::gauge, "counted_share", "milli"};
      if (static_cast<CounterId>(i) == CounterId::cycles)
        book_.put(process.shares[i], share, process.id.value, "cycles", now,
                  static_cast<int64_t>(std::llround(counts[i].counted_share * 1000)));
    }
  }
}

}  // namespace assay::capture
