// FormatSpec: everything the rest of Assay knows of one format; its folder describes it.
//
// Each folder here has a format.cpp with FOLDER_formats(): the formats that it reads or writes. The
// build puts them into one table, all_formats(). From the table come what import detects and reads,
// what export writes, the help texts, the errors that list formats, and the page's menu: a new
// format is a new folder. Threads: const after start. Failures: those of read() and write().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/export/metric.h"
#include "formats/import/input.h"

namespace assay::formats {

struct ExportOptions;
struct ReadOptions;
struct TotalRow;
class Output;
class PerfData;
class RunBuilder;
class SelectedRun;

// A file that is to become part of a run.
struct ReadJob {
  const Input& input;
  const ReadOptions& options;
  RunBuilder& builder;
  // Stacks of perf.data must be unwound and named, which only rooms above this one can do.
  std::function<Result<void>(PerfData&)> take_perf_data;
};

// A selection that is to become a file.
struct WriteJob {
  SelectedRun& run;
  const std::vector<TotalRow>& rows;
  const ExportOptions& options;
  Metric metric;  // that was asked for, or else what the run has to show
  Output& output;
};

// How surely a file is recognised by its first bytes; the surest are asked first.
enum class Sure : uint8_t { magic, header, layout, lines, fields };

using MetricSet = uint32_t;  // a bit for each Metric
constexpr MetricSet metric_set(std::initializer_list<Metric> metrics) {
  MetricSet set = 0;
  for (Metric metric : metrics) set |= MetricSet{1} << static_cast<unsigned>(metric);
  return set;
}
inline constexpr MetricSet kTimeMetrics =
    metric_set({Metric::cpu, Metric::off, Metric::wall, Metric::lock, Metric::runqueue,
                Metric::samples, Metric::waits});
inline constexpr MetricSet kHeapMetrics = metric_set(
    {Metric::inuse_space, Metric::inuse_objects, Metric::alloc_space, Metric::alloc_objects});

struct FormatSpec {
  std::string_view name{};   // as --format has it
  int place = 0;             // in lists, smallest first
  std::string_view title{};  // in the page's menu
  std::string_view help{};

  // What it can hold.
  MetricSet metrics = kTimeMetrics;
  bool has_times = false;   // a time axis, not only sums
  bool one_metric = false;  // of one metric at a time; else of several beside one another
  bool compares = false;    // also two runs
  bool binary = false;      // not for a terminal
  // What is said of a metric of time that it does not hold, and what to do then.
  std::string_view refusal{}, remedy{};

  // Writing. The first suffix is what files are given.
  std::array<std::string_view, 2> suffixes{};
  Result<void> (*write)(const WriteJob& job) = nullptr;

  // Reading.
  Sure sure = Sure::fields;
  bool (*detect)(std::string_view head) = nullptr;
  size_t most_bytes = Input::kMostBytes;  // readers that make more of their bytes take fewer
  bool asks_meaning = false;              // does not always say whether it holds CPU time
  Result<void> (*read)(const ReadJob& job) = nullptr;

  bool holds(Metric metric) const { return (metrics & metric_set({metric})) != 0; }
  bool holds_heap() const { return (metrics & kHeapMetrics) != 0; }
  bool holds_time() const { return (metrics & kTimeMetrics) != 0; }
};

using Formats = std::vector<const FormatSpec*>;

const Formats& all_formats();      // by place
const Formats& written_formats();  // by place
const Formats& read_formats();     // by place

const FormatSpec* find_format(std::string_view name);
// By the longest suffix of a written format; null: none has it.
const FormatSpec* format_of_file(std::string_view path);
// What reads a file that begins with these bytes; null: nothing does.
const FormatSpec* detect_format(std::string_view head);

// "a, b or c"; a line that grows longer than `wrap` is broken behind a comma.
std::string format_list(const Formats& formats, std::string_view last = " or ",
                        size_t wrap = SIZE_MAX);
std::string format_choice(const Formats& formats);  // "a|b|c"
// Those of which `is_wanted` holds.
Formats formats_with(const Formats& among, const std::function<bool(const FormatSpec&)>& is_wanted);

}  // namespace assay::formats
