#include "formats/tree/heading.h"

#include <algorithm>
#include <ctime>

#include "base/units.h"
#include "formats/export/text.h"
#include "run/run_kind.h"

namespace assay::formats {
namespace {

// What a profile counts that was imported and is not of time; empty for every other metric.
std::string counted_unit(const run::Contents& contents, Metric metric) {
  if (metric != Metric::cpu) return "";
  return run::counted_unit(contents);
}

}  // namespace

std::string amount_of(const run::Contents& contents, Metric metric, int64_t value) {
  std::string unit = counted_unit(contents, metric);
  if (unit.empty()) return metric_value(metric, value);
  auto count = static_cast<uint64_t>(std::max<int64_t>(0, value));
  return unit == "bytes" ? format_bytes(count)
                         : fmt::format("{} {}", format_count(count), clean_text(unit, 40));
}

std::string title_of(const run::Contents& contents, Metric metric) {
  std::string unit = counted_unit(contents, metric);
  return unit.empty() ? std::string(metric_title(metric))
                      : fmt::format("Profile of {}", clean_text(unit, 40));
}

std::string subtitle_of(const SelectedRun& run, const FlameTree& tree, Metric metric,
                        const Selection& selection) {
  const model::RunInfo& info = run.contents().info;
  int64_t total = tree.nodes()[0].total;
  const run::Contents& contents = run.contents();
  std::string text = amount_of(contents, metric, total);
  if (run.end_ns() > run.begin_ns() && counted_unit(contents, metric).empty())
    text += fmt::format(" in {}", format_duration(run.end_ns() - run.begin_ns()));
  if (tree.nodes()[0].base_total > 0) {
    int64_t before = tree.nodes()[0].base_total;
    text += fmt::format(", before {}", amount_of(contents, metric, before));
  }
  if (!info.target.empty()) text += " · " + info.target;
  for (pid_t pid : selection.pids) text += fmt::format(" · pid {}", pid);
  for (const std::string& process : selection.processes) text += " · " + process;
  for (pid_t tid : selection.tids) text += fmt::format(" · tid {}", tid);
  for (const std::string& pool : selection.pools) text += " · pool " + pool;
  if (!selection.thread.empty()) text += " · threads " + selection.thread;
  if (!selection.focus.empty()) text += " · focus " + selection.focus;
  if (!selection.ignore.empty()) text += " · without " + selection.ignore;
  if (info.utc_begin_ns > 0) {
    std::time_t seconds = info.utc_begin_ns / kNsPerSecond;
    std::tm utc{};
    char stamp[40] = {};
    gmtime_r(&seconds, &utc);
    std::strftime(stamp, sizeof stamp, " · %Y-%m-%d %H:%M:%S UTC", &utc);
    text += stamp;
  }
  return text;
}

}  // namespace assay::formats
