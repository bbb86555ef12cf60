// LoadWindow: what load did during a capture, put into the run.
//
// In: ticks of a load process (or, of a shell command, only its CPU time). Out: series of scope
// `load` with a point about every second of the window, and at the end facts of scope "load" and,
// where the load is not as it should be, a note. Not thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "load/load_options.h"
#include "load/result/tick_line.h"
#include "run/writer.h"

namespace assay::session {

// What is said of the load as a whole.
struct LoadFacts {
  bool command = false;  // a shell command; otherwise a URL
  std::string what;      // as the user wrote it
  load::PlanLine plan;   // of a URL
  std::string ended;     // "covered", "early: why", "failed: why"
  int restarts = 0;
  std::string output;  // of a command: the end of what it printed
};

class LoadWindow {
 public:
  // Before the window ticks only count up the totals.
  void add_tick(const load::TickLine& tick);
  void set_group_cpu(TimeNs now, int64_t cpu_ns);  // of a shell command, cumulative

  void begin(run::Writer& writer, std::atomic<uint32_t>& next_series, bool command, TimeNs now);
  void close() { closed_ = true; }  // later ticks do not count
  void finish(const LoadFacts& facts, TimeNs window_begin, TimeNs window_end);

  TimeNs last_tick() const { return last_tick_; }
  uint64_t ok_in_window() const { return in_window_.total.ok; }
  uint64_t ok_so_far() const { return ok_; }  // since load began, window or not

 private:
  enum Row : uint8_t { requests, errors, p50, p90, p99, max, generator_cpu, kRows };
  void write_point(TimeNs time);
  void put(Row row, TimeNs time, int64_t value);
  void write_command_facts(int64_t window_ns);
  void write_url_facts(const load::PlanLine& plan);
  void fact(const char* key, const std::string& value);

  run::Writer* writer_ = nullptr;  // null: the window has not begun
  bool command_ = false;
  bool closed_ = false;
  std::array<model::SeriesId, kRows> series_{};
  TimeNs next_point_ = 0, last_point_ = 0;
  TimeNs last_tick_ = 0;
  uint64_t ok_ = 0, failed_ = 0;  // since load began
  int64_t cpu_ns_ = 0;
  load::Histogram since_point_;
  load::LoadResult in_window_;  // total, begin and end
  int64_t cpu_at_begin_ = 0;
};

}  // namespace assay::session
