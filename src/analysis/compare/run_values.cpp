#include "analysis/compare/run_values.h"

#include <charconv>
#include <cmath>

#include "analysis/analyse.h"
#include "analysis/compare/functions/comparable_name.h"
#include "analysis/compare/functions/counted_parts.h"

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

void add_amount(const HeapAmount& more, HeapAmount& sum) {
  sum.bytes += more.bytes;
  sum.objects += more.objects;
  sum.bytes_error = std::hypot(sum.bytes_error, more.bytes_error);
  sum.objects_error = std::hypot(sum.objects_error, more.objects_error);
  sum.samples += more.samples;
}

HeapValues heap_values(const HeapSummary& heap, const std::string& program) {
  HeapValues out;
  out.present = heap.present;
  out.timed = heap.timed;
  out.live_known = heap.live_known;
  out.freed_known = heap.freed_known;
  out.rate_bytes = static_cast<double>(heap.rate_bytes);
  out.live = heap.live;
  out.allocated = heap.allocated;
  std::map<std::pair<std::string, std::string>, double> heaviest;
  for (const HeapSite& site : heap.sites) {
    std::pair key{comparable_name(site.function),
                  site.module == program ? "" : comparable_module(site.module)};
    HeapSiteValues& values = out.sites[key];
    values.module = site.module;
    add_amount(site.live, values.live);
    add_amount(site.allocated, values.allocated);
    auto [most, first] = heaviest.try_emplace(key, site.allocated.bytes);
    if (!first && site.allocated.bytes <= most->second) continue;
    most->second = site.allocated.bytes;
    values.file = site.file;
    values.line = site.line;
  }
  return out;
}

// The first process is the one that was asked for, or launched; the others are its children.
std::string program_of(const run::Reader& reader) {
  const auto& processes = reader.contents().processes;
  if (processes.empty()) return "";
  const std::string& exe = processes.front().exe;
  return exe.substr(exe.rfind('/') + 1);
}

RunValues values_of(const Report& report, const std::string& path, const std::string& program) {
  RunValues values;
  values.path = path;
  values.program = program;
  values.info = report.info;
  values.seconds = static_cast<double>(report.window_ns) / 1e9;
  values.time = report.thread_time;
  values.cpu_ns = static_cast<double>(report.thread_time.running_ns());
  // As the report has it: the rate between two reports of the load, over the whole window.
  values.load_measured = report.workload.measured;
  if (report.workload.measured) values.requests = report.workload.throughput_per_s * values.seconds;
  values.errors = static_cast<double>(report.workload.errors);
  values.samples = report.quality.samples;
  values.waits = report.quality.waits;
  values.lost_share = report.quality.lost_share;
  values.category_ns = category_times(report);
  values.lock_ns = lock_times(report);
  values.heap = heap_values(report.heap, program);
  values.run_kind = report.run_kind;
  for (const model::Fact& fact : report.facts)
    values.facts[fact.scope + " " + fact.key] = fact.value;
  if (values.requests > 0) {  // else nothing was answered, in no time
    values.latency_p50_ns = number(values.facts, "load p50_ns");
    values.latency_p90_ns = number(values.facts, "load p90_ns");
    values.latency_p99_ns = number(values.facts, "load p99_ns");
  }
  values.verdict = report.verdict.kind;
  values.verdict_sentence = report.verdict.sentence;
  return values;
}

}  // namespace

Result<UnplacedRun> read_unplaced_run(const run::Reader& reader, const std::string& path,
                                      const run::Selection& selection) {
  Options options;
  options.run_path = path;
  options.selection = selection;
  options.max_heap_sites = SIZE_MAX;
  auto analysed = analyse_run(reader, options);
  if (!analysed) return std::unexpected(analysed.error());
  RunValues values = values_of(analysed->report, path, program_of(reader));
  bool any = values.samples > 0 || values.waits > 0 || values.heap.allocated.samples > 0 ||
             values.heap.live.samples > 0;
  if (!any)
    return fail_with_remedy(
        fmt::format("{} is empty: neither a sample nor a wait was recorded in it", path),
        "record again while the server has work to do");
  auto counted = read_counted_parts(reader, selection);
  if (!counted) return std::unexpected(counted.error());
  values.counted = std::move(*counted);
  return UnplacedRun{std::move(values), std::move(analysed->calls),
                     std::move(analysed->cpu_ns_by_stack)};
}

RunValues place(UnplacedRun run, UnionTree& tree) {
  run.values.column = tree.add_run(run.calls, run.ns_by_stack, run.values.program);
  double sampled = tree.total_ns(run.values.column)[UnionTree::kRoot];
  run.values.sampled_ns = sampled;
  double share = run.values.cpu_ns > 0 ? sampled / run.values.cpu_ns : 1;
  // Far from all of it, or of far more, they are not samples of that time.
  constexpr double kFarthest = 2;
  if (share > 1 / kFarthest && share < kFarthest) run.values.sampled_share = share;
  return std::move(run.values);
}

Result<RunValues> read_run_values(const run::Reader& reader, const std::string& path,
                                  UnionTree& tree) {
  auto unplaced = read_unplaced_run(reader, path);
  if (!unplaced) return std::unexpected(unplaced.error());
  return place(std::move(*unplaced), tree);
}

}  // namespace assay::analysis
