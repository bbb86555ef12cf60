#include "analysis/compare/run_values.h"

#include <charconv>

#include "analysis/analyse.h"
#include "analysis/compare/comparable_name.h"
#include "analysis/compare/counted_parts.h"
#include "analysis/thread_counters.h"

namespace assay::analysis {
namespace {

std::optional<double> number(const std::map<std::string, std::string>& facts,
                             const std::string& key) {
  auto found = facts.find(key);
  if (found == facts.end()) return {};
  double value = 0;
  const std::string& text = found->second;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() ? std::optional(value) : std::nullopt;
}

// How much a cumulative series of the load grew in the window. Its points do not stand at the
// window's very ends while CPU time is of all of it, so growth is scaled to the whole.
Result<double> growth_of_load(const run::Reader& reader, const std::string& name) {
  const run::Contents& run = reader.contents();
  double grown = 0;
  for (const model::Series& series : run.series) {
    if (series.scope != model::SeriesScope::load || series.name != name) continue;
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    auto growth = growth_of(*points, run.info.window_begin_ns, run.info.window_end_ns);
    if (!growth) continue;
    grown += static_cast<double>(growth->by) *
             static_cast<double>(run.info.window_end_ns - run.info.window_begin_ns) /
             static_cast<double>(growth->end_ns - growth->begin_ns);
  }
  return grown;
}

// Names of locks whose address or build differs between runs are told apart by nothing else.
std::map<std::string, double> lock_times(const Report& report) {
  std::map<std::string, double> out;
  for (const LockSummary& lock : report.locks)
    out[comparable_name(lock.name)] += static_cast<double>(lock.total_ns);
  return out;
}

std::map<std::string, double> category_times(const Report& report) {
  std::map<std::string, double> out;
  for (const CategoryShare& share : report.categories) {
    if (share.category.breakdown == kSubsystem)
      out[share.category.name] += static_cast<double>(share.time_ns);
  }
  return out;
}

RunValues values_of(const Report& report, const std::string& path) {
  RunValues values;
  values.path = path;
  values.info = report.info;
  values.seconds = static_cast<double>(report.window_ns) / 1e9;
  values.time = report.thread_time;
  values.cpu_ns = static_cast<double>(report.thread_time.running_ns());
  values.samples = report.quality.samples;
  values.waits = report.quality.waits;
  values.lost_share = report.quality.lost_share;
  values.category_ns = category_times(report);
  values.lock_ns = lock_times(report);
  for (const model::Fact& fact : report.facts)
    values.facts[fact.scope + " " + fact.key] = fact.value;
  values.latency_p50_ns = number(values.facts, "load p50_ns");
  values.latency_p90_ns = number(values.facts, "load p90_ns");
  values.latency_p99_ns = number(values.facts, "load p99_ns");
  values.verdict = report.verdict.kind;
  values.verdict_sentence = report.verdict.sentence;
  return values;
}

}  // namespace

Result<UnplacedRun> read_unplaced_run(const run::Reader& reader, const std::string& path) {
  Options options;
  options.run_path = path;
  auto report = analyse(reader, options);
  if (!report) return std::unexpected(report.error());
  RunValues values = values_of(*report, path);
  if (values.samples == 0 && values.waits == 0)
    return fail_with_remedy(
        fmt::format("{} is empty: neither a sample nor a wait was recorded in it", path),
        "record again while the server has work to do");
  auto requests = growth_of_load(reader, "requests");
  if (!requests) return std::unexpected(requests.error());
  auto errors = growth_of_load(reader, "errors");
  if (!errors) return std::unexpected(errors.error());
  values.requests = *requests;
  values.errors = *errors;
  auto counted = read_counted_parts(reader);
  if (!counted) return std::unexpected(counted.error());
  values.counted = std::move(*counted);

  CallTree calls(reader.contents());
  OnCpuBuilder on_cpu(calls);
  run::TimeRange window{report->info.window_begin_ns, report->info.window_end_ns};
  auto read =
      reader.for_each_sample(window, [&](const model::Sample& sample) { on_cpu.add(sample); });
  if (!read) return std::unexpected(read.error());
  std::vector<int64_t> ns_by_stack = on_cpu.weights();
  return UnplacedRun{std::move(values), std::move(calls), std::move(ns_by_stack)};
}

RunValues place(UnplacedRun run, UnionTree& tree) {
  run.values.column = tree.add_run(run.calls, run.ns_by_stack);
  return std::move(run.values);
}

Result<RunValues> read_run_values(const run::Reader& reader, const std::string& path,
                                  UnionTree& tree) {
  auto unplaced = read_unplaced_run(reader, path);
  if (!unplaced) return std::unexpected(unplaced.error());
  return place(std::move(*unplaced), tree);
}

}  // namespace assay::analysis
