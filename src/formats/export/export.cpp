#include "formats/export/export.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include "base/units.h"
#include "formats/export/missing_metric.h"
#include "formats/export/output.h"
#include "formats/export/text.h"
#include "formats/export/totals.h"
#include "formats/firefox/write_firefox.h"
#include "formats/folded/write_folded.h"
#include "formats/gperftools/write_gperftools_heap.h"
#include "formats/perf/write_perf_script.h"
#include "formats/pprof/write_pprof.h"
#include "formats/speedscope/write_speedscope.h"
#include "formats/svg/write_svg.h"
#include "formats/table/write_by_second.h"
#include "formats/table/write_table.h"
#include "run/run_kind.h"

namespace assay::formats {
namespace {

struct FormatRow {
  std::string_view name;
  std::string_view suffix;
};
constexpr std::array<FormatRow, kFormatCount> kFormats{{{"pprof", ".pb.gz"},
                                                        {"folded", ".folded"},
                                                        {"svg", ".svg"},
                                                        {"speedscope", ".speedscope.json"},
                                                        {"firefox", ".firefox.json"},
                                                        {"perf-script", ".perf.txt"},
                                                        {"collapsed-by-second", ".by-second.tsv"},
                                                        {"csv", ".csv"},
                                                        {"tsv", ".tsv"},
                                                        {"gperftools-heap", ".heap"}}};

// What a profile counts that was imported and is not of time; empty for every other metric.
std::string counted_unit(const run::Contents& contents, Metric metric) {
  if (metric != Metric::cpu) return "";
  return run::counted_unit(contents);
}

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

std::string subtitle(const SelectedRun& run, const FlameTree& tree, Metric metric,
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
  for (const std::string& process : selection.processes) text += " · " + process;
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

bool is_narrowed(const Selection& selection) {
  return !selection.processes.empty() || !selection.process_ids.empty() ||
         !selection.thread.empty() || !selection.focus.empty() || !selection.ignore.empty() ||
         selection.from_ns || selection.to_ns || selection.without_idle;
}

Result<void> check_heap(const run::Contents& contents, Format format, Metric metric) {
  bool wants_heap = is_heap(metric) || format == Format::gperftools_heap;
  if (wants_heap && !contents.has_heap) {
    return fail_with_remedy("the run holds no allocations",
                            "take them with: assay heap TARGET, or assay record --heap TARGET");
  }
  bool holds_heap = format == Format::folded || format == Format::svg || format == Format::pprof ||
                    format == Format::gperftools_heap;
  if (wants_heap && !holds_heap) {
    return fail_with_remedy(fmt::format("{} holds times, not allocations", format_name(format)),
                            "--format pprof, folded, svg or gperftools-heap");
  }
  return {};
}

// What must be known of a run to say that it has nothing of the metric: a lock that nobody waited
// for is new, a heap that was not sampled is not.
Metric evidence_of(Metric metric) {
  switch (metric) {
    case Metric::samples:
      return Metric::cpu;
    case Metric::lock:
    case Metric::runqueue:
    case Metric::waits:
      return Metric::off;
    case Metric::inuse_space:
    case Metric::inuse_objects:
    case Metric::alloc_objects:
      return Metric::alloc_space;
    default:
      return metric;
  }
}

// One side of a comparison; what a selection leaves of it may be nothing.
Result<void> check_side(SelectedRun& side, const std::vector<TotalRow>& rows, Metric metric,
                        const ExportOptions& options) {
  if (auto fits = check_heap(side.contents(), options.format, metric); !fits) return fits;
  if (auto known = check_evidence(side.contents(), metric); !known) return known;
  Metric needed = evidence_of(metric);
  bool any = has_any(rows, metric) || has_any(rows, needed);
  if (!any && is_narrowed(options.selection)) {
    auto whole = SelectedRun::make(side.reader(), {});
    if (!whole) return std::unexpected(whole.error());
    auto all = sum_up(**whole);
    if (!all) return std::unexpected(all.error());
    any = has_any(*all, metric) || has_any(*all, needed);
  }
  if (any) return {};
  return std::unexpected(missing_metric(side.contents(), rows, metric));
}

Result<FlameTree> make_tree(SelectedRun& run, const std::vector<TotalRow>& rows,
                            const ExportOptions& options, Metric metric) {
  FlameTree tree("all", {metric, options.grouping, options.inverted, options.base != nullptr});
  tree.add(run, rows);
  if (options.base != nullptr) {
    auto base = SelectedRun::make(*options.base, options.selection);
    if (!base) return std::unexpected(base.error());
    auto base_rows = sum_up(**base);
    if (!base_rows) return std::unexpected(base_rows.error());
    if (auto held = check_side(run, rows, metric, options); !held)
      return std::unexpected(held.error());
    if (auto held = check_side(**base, *base_rows, metric, options); !held) {
      Error error = held.error();
      error.what = "the base: " + error.what;
      return std::unexpected(std::move(error));
    }
    if (!has_any(rows, metric) && !has_any(*base_rows, metric))
      return std::unexpected(missing_metric(run.contents(), rows, metric));
    tree.add(**base, *base_rows, true);
  }
  tree.finish();
  return tree;
}

Result<void> write_tree(SelectedRun& run, const std::vector<TotalRow>& rows,
                        const ExportOptions& options, Metric metric, Output& output) {
  auto tree = make_tree(run, rows, options, metric);
  if (!tree) return std::unexpected(tree.error());
  if (options.format == Format::folded) {
    write_folded(*tree, output);
    return {};
  }
  SvgOptions svg;
  svg.title = options.title;
  if (svg.title.empty()) {
    svg.title = fmt::format("{}{}", title_of(run.contents(), metric),
                            options.base != nullptr ? ", compared"
                            : options.inverted      ? ", by leaf function"
                                                    : "");
  }
  svg.subtitle = subtitle(run, *tree, metric, options.selection);
  svg.icicle = options.icicle;
  svg.differential = options.base != nullptr;
  svg.amount = [&](int64_t value) { return amount_of(run.contents(), metric, value); };
  write_svg(*tree, svg, output);
  return {};
}

// A heap profile has nothing else to show.
Metric default_metric(const run::Contents& contents) {
  if (!contents.is_heap_alone()) return Metric::cpu;
  bool live = !contents.heap_imported ||
              std::ranges::any_of(contents.heap_sums,
                                  [](const model::HeapSum& sum) { return sum.live_bytes > 0; });
  return live ? Metric::inuse_space : Metric::alloc_space;
}

// Some formats hold what they hold, whatever metric is asked for.
Result<void> check_metric(const ExportOptions& options) {
  if (!options.metric) return {};
  Metric metric = *options.metric;
  bool is_table = options.format == Format::csv || options.format == Format::tsv;
  bool is_time = metric == Metric::cpu || metric == Metric::off || metric == Metric::wall;
  if (is_table && !is_time && !is_heap(metric))
    return fail_with_remedy("a table holds CPU and off-CPU time", "--metric cpu, off or wall");
  if (options.format == Format::firefox && metric != Metric::cpu && !is_heap(metric))
    return fail_with_remedy("firefox holds samples of CPU time, and waits as markers beside them",
                            "leave --metric out, or --format speedscope");
  return {};
}

// The formats that hold one metric, and what shows one because it was asked for.
bool shows_one(const ExportOptions& options) {
  return options.metric || options.format == Format::folded || options.format == Format::svg ||
         options.format == Format::perf_script || options.format == Format::by_second;
}

// Neither a slip of the pen in an expression nor a metric that was not recorded must look like "no
// time there".
Result<void> check_any(const SelectedRun& run, const std::vector<TotalRow>& rows,
                       const ExportOptions& options) {
  bool one = shows_one(options), narrowed = is_narrowed(options.selection);
  Metric metric = options.metric.value_or(default_metric(run.contents()));
  if (auto known = check_evidence(run.contents(), metric); !known) return known;
  if (one ? has_any(rows, metric) || options.base != nullptr : !rows.empty()) return {};
  if (!narrowed) return std::unexpected(missing_metric(run.contents(), rows, metric));
  return fail_with_remedy(fmt::format("nothing in the run matches that selection{}",
                                      one ? fmt::format(" ({})", metric_title(metric)) : ""),
                          "assay export RUN --format csv lists functions and their times");
}

Result<void> write(SelectedRun& run, const std::vector<TotalRow>& rows,
                   const ExportOptions& options, Output& output) {
  Metric metric = options.metric.value_or(default_metric(run.contents()));
  switch (options.format) {
    case Format::folded:
    case Format::svg:
      return write_tree(run, rows, options, metric, output);
    case Format::pprof:
      if (!options.metric && !has_any(rows, Metric::cpu) && has_any(rows, Metric::off)) {
        metric = Metric::off;
      }
      return write_pprof(run, rows, metric, output);
    case Format::gperftools_heap:
      write_gperftools_heap(run, rows, output);
      return {};
    case Format::speedscope:
      return write_speedscope(run, options.metric, output);
    case Format::firefox:
      return write_firefox(run, output);
    case Format::perf_script:
      return write_perf_script(run, metric, output);
    case Format::by_second:
      return write_by_second(run, metric, output);
    case Format::csv:
    case Format::tsv:
      write_table(run, rows, metric, options.format == Format::csv ? ',' : '\t', output);
      return {};
  }
  return fail("unknown format");
}

}  // namespace

std::string_view format_name(Format format) {
  return kFormats[static_cast<size_t>(format)].name;
}
std::string_view format_suffix(Format format) {
  return kFormats[static_cast<size_t>(format)].suffix;
}

std::optional<Format> parse_format(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) return static_cast<Format>(i);
  }
  return std::nullopt;
}

std::optional<Format> format_of_file(std::string_view path) {
  std::optional<Format> found;
  size_t longest = 0;
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (!path.ends_with(kFormats[i].suffix) || kFormats[i].suffix.size() <= longest) continue;
    longest = kFormats[i].suffix.size();
    found = static_cast<Format>(i);
  }
  return found;
}

Result<void> export_run(const run::Reader& reader, const ExportOptions& options,
                        const std::string& path) {
  auto run = SelectedRun::make(reader, options.selection);
  if (!run) return std::unexpected(run.error());
  Metric metric = options.metric.value_or(default_metric(reader.contents()));
  if (auto fits = check_heap(reader.contents(), options.format, metric); !fits) return fits;
  if (auto fits = check_metric(options); !fits) return fits;
  auto rows = sum_up(**run);
  if (!rows) return std::unexpected(rows.error());
  if (auto any = check_any(**run, *rows, options); !any) return any;
  auto output = Output::create(path);
  if (!output) return std::unexpected(output.error());
  if (auto done = write(**run, *rows, options, *output); !done) return done;
  return output->commit();
}

Result<std::vector<std::string>> export_by_process(const run::Reader& reader,
                                                   const ExportOptions& options,
                                                   const std::string& directory,
                                                   const std::string& suffix) {
  auto all = SelectedRun::make(reader, options.selection);
  if (!all) return std::unexpected(all.error());
  auto rows = sum_up(**all);
  if (!rows) return std::unexpected(rows.error());
  std::set<model::ProcessId> wanted;
  Metric shown = options.metric.value_or(default_metric(reader.contents()));
  if (shown == Metric::cpu && !shows_one(options)) shown = Metric::wall;
  for (const TotalRow& row : *rows) {
    if (row.of(shown) > 0) {
      wanted.insert((*all)->thread(row.thread).process);
    }
  }
  std::vector<std::string> paths;
  std::set<std::string> names;
  for (const model::Process& process : reader.contents().processes) {
    model::ProcessId id = process.id;
    std::string name =
        file_name_text(process.role.empty() ? model::process_name(process) : process.role);
    for (int64_t more : {int64_t{process.pid}, int64_t{id.value}}) {
      if (!names.contains(name)) break;
      name += fmt::format("-{}", more);
    }
    names.insert(name);  // taken, whether it has a file of this metric or not
    if (!wanted.contains(id)) continue;
    ExportOptions one = options;
    one.selection.process_ids = {id};
    one.title = fmt::format(
        "{}: {}", (*all)->process_label(id),
        title_of(reader.contents(), options.metric.value_or(default_metric(reader.contents()))));
    paths.push_back(fmt::format("{}/{}{}", directory, name, suffix));
    if (auto done = export_run(reader, one, paths.back()); !done) {
      return std::unexpected(done.error());
    }
  }
  return paths;
}

}  // namespace assay::formats
