#include "capture/counters/task_counters.h"

#include <cerrno>
#include <unordered_set>

#include <fmt/format.h>
#include <sys/stat.h>

#include "os/text_fields.h"

namespace assay::capture {
namespace {

using model::SeriesKind;
using model::SeriesScope;

constexpr SeriesSpec of_thread(const char* name, const char* unit) {
  return {SeriesScope::thread, SeriesKind::cumulative, name, unit};
}
constexpr SeriesSpec of_process(const char* name, const char* unit,
                                SeriesKind kind = SeriesKind::cumulative) {
  return {SeriesScope::process, kind, name, unit};
}

constexpr std::array kSchedSpecs{of_thread("run", "ns"), of_thread("run_delay", "ns"),
                                 of_thread("timeslices", "count")};
constexpr std::array kThreadSpecs{of_thread("utime", "ns"),
                                  of_thread("stime", "ns"),
                                  of_thread("minor_faults", "count"),
                                  of_thread("major_faults", "count"),
                                  of_thread("voluntary_switches", "count"),
                                  of_thread("involuntary_switches", "count")};
constexpr std::array kProcessSpecs{of_process("utime", "ns"),
                                   of_process("stime", "ns"),
                                   of_process("minor_faults", "count"),
                                   of_process("major_faults", "count"),
                                   of_process("threads", "count", SeriesKind::gauge),
                                   of_process("rss", "bytes", SeriesKind::gauge),
                                   of_process("read_chars", "bytes"),
                                   of_process("write_chars", "bytes"),
                                   of_process("read_bytes", "bytes"),
                                   of_process("write_bytes", "bytes")};
constexpr size_t kFirstIoTrack = 6;
constexpr SeriesSpec kOpenFiles = of_process("open_files", "count", SeriesKind::gauge);

// Writes the last values of tasks that have ended and drops them.
template <class Map, class Living>
void forget(Map& map, const Living& living, SeriesBook& book) {
  std::unordered_set<typename Map::key_type> alive;
  for (const auto& one : living) alive.insert(one.id);
  for (auto entry = map.begin(); entry != map.end();) {
    if (alive.contains(entry->first)) {
      ++entry;
      continue;
    }
    for (Track& track : entry->second) book.settle(track);
    entry = map.erase(entry);
  }
}

}  // namespace

void SchedCounters::poll(const LiveTasks& tasks) {
  for (const LiveThread& thread : tasks.threads) {
    no_schedstat_ ? poll_from_ticks(thread) : poll_thread(thread);
  }
}

void SchedCounters::poll_thread(const LiveThread& thread) {
  auto sched = proc_.thread_schedstat(thread.pid, thread.tid);
  // A thread that has run but has zero slices, or a missing file beside an existing stat file: this
  // kernel has no schedstat.
  bool suspicious = sched ? sched->timeslices == 0 : sched.error().code == ENOENT;
  if (suspicious && accounting_is_off(thread)) {
    no_schedstat_ = true;
    book_.sink().add_note({"run-queue time",
                           "this kernel keeps no schedstat (CONFIG_SCHED_INFO is off): CPU time of "
                           "threads comes from "
                           "clock ticks and time waiting for a CPU is unknown",
                           "boot a kernel with CONFIG_SCHED_INFO=y"});
    poll_from_ticks(thread);
    return;
  }
  if (!sched) return;  // it ended: keep the last values
  TimeNs now = clock_();
  Tracks& tracks = threads_[thread.id];
  const std::array<int64_t, 3> values{sched->run_ns, sched->run_delay_ns,
                                      to_value(sched->timeslices)};
  for (size_t i = 0; i < values.size(); ++i) {
    book_.put(tracks[i], kSchedSpecs[i], thread.id.value, "", now, values[i]);
  }
}

// Read again in this order, so that a thread that just ended, or whose tid was reused, is not
// mistaken for a kernel without schedstat.
bool SchedCounters::accounting_is_off(const LiveThread& thread) const {
  auto stat = proc_.thread_stat(thread.pid, thread.tid);
  if (!stat) return false;
  auto sched = proc_.thread_schedstat(thread.pid, thread.tid);
  if (sched) return sched->timeslices == 0 && stat->utime_ns + stat->stime_ns > 0;
  return sched.error().code == ENOENT && proc_.thread_stat(thread.pid, thread.tid).has_value();
}

void SchedCounters::poll_from_ticks(const LiveThread& thread) {
  auto stat = proc_.thread_stat(thread.pid, thread.tid);
  if (!stat) return;
  book_.put(threads_[thread.id][0], kSchedSpecs[0], thread.id.value, "ticks", clock_(),
            stat->utime_ns + stat->stime_ns);
}

void SchedCounters::forget_the_gone(const LiveTasks& tasks) {
  forget(threads_, tasks.threads, book_);
}

void ThreadCounters::poll(const LiveTasks& tasks) {
  for (const LiveThread& thread : tasks.threads) {
    auto stat = proc_.thread_stat(thread.pid, thread.tid);
    if (!stat) continue;
    TimeNs now = clock_();
    Tracks& tracks = threads_[thread.id];
    const std::array<int64_t, 4> values{stat->utime_ns, stat->stime_ns,
                                        to_value(stat->minor_faults), to_value(stat->major_faults)};
    for (size_t i = 0; i < values.size(); ++i) {
      book_.put(tracks[i], kThreadSpecs[i], thread.id.value, "", now, values[i]);
    }
    auto status = proc_.thread_status(thread.pid, thread.tid);
    if (!status) continue;
    now = clock_();
    book_.put(tracks[4], kThreadSpecs[4], thread.id.value, "", now,
              to_value(status->voluntary_switches));
    book_.put(tracks[5], kThreadSpecs[5], thread.id.value, "", now,
              to_value(status->involuntary_switches));
  }
}

void ThreadCounters::forget_the_gone(const LiveTasks& tasks) {
  forget(threads_, tasks.threads, book_);
}

void ProcessCounters::poll(const LiveTasks& tasks) {
  for (const LiveProcess& process : tasks.processes) {
    auto stat = proc_.stat(process.pid);
    if (!stat) continue;
    TimeNs now = clock_();
    Tracks& tracks = processes_[process.id];
    const std::array<int64_t, 5> values{stat->utime_ns, stat->stime_ns,
                                        to_value(stat->minor_faults), to_value(stat->major_faults),
                                        stat->thread_count};
    for (size_t i = 0; i < values.size(); ++i) {
      book_.put(tracks[i], kProcessSpecs[i], process.id.value, "", now, values[i]);
    }
    if (auto status = proc_.status(process.pid)) {
      book_.put(tracks[5], kProcessSpecs[5], process.id.value, "", clock_(),
                to_value(status->rss_bytes));
    }
    poll_io(process, tracks);
  }
}

void ProcessCounters::poll_io(const LiveProcess& process, Tracks& tracks) {
  auto text = proc_.read(fmt::format("{}/io", process.pid));
  if (!text) {
    int code = text.error().code;
    if ((code == EACCES || code == EPERM) && !io_note_given_) {
      io_note_given_ = true;
      book_.sink().add_note(
          {"disk I/O",
           "/proc/PID/io of the target may not be read: bytes read and written are unknown",
           "run Assay as root (sudo)"});
    }
    return;
  }
  constexpr std::array kKeys{"rchar", "wchar", "read_bytes", "write_bytes"};
  TimeNs now = clock_();
  for (size_t i = 0; i < kKeys.size(); ++i) {
    auto value = os::parse_u64(os::field_after(*text, kKeys[i]));
    if (!value) continue;
    book_.put(tracks[kFirstIoTrack + i], kProcessSpecs[kFirstIoTrack + i], process.id.value, "",
              now, to_value(*value));
  }
}

void ProcessCounters::forget_the_gone(const LiveTasks& tasks) {
  forget(processes_, tasks.processes, book_);
}

void OpenFileCounters::poll(const LiveTasks& tasks) {
  for (const LiveProcess& process : tasks.processes) {
    std::string folder = fmt::format("{}/{}/fd", proc_.root(), process.pid);
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) continue;
    // Since Linux 6.2 the folder's size is the number of open files.
    int64_t count = proc_.root() == "/proc" ? info.st_size : 0;
    if (count == 0) count = static_cast<int64_t>(proc_.fds(process.pid).size());
    book_.put(processes_[process.id][0], kOpenFiles, process.id.value, "", clock_(), count);
  }
}

void OpenFileCounters::forget_the_gone(const LiveTasks& tasks) {
  forget(processes_, tasks.processes, book_);
}

}  // namespace assay::capture
