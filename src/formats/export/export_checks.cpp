#include "formats/export/export_checks.h"

#include <algorithm>

#include "formats/export/missing_metric.h"

namespace assay::formats {
namespace {

Result<void> check_heap(const run::Contents& contents, const FormatSpec& format, Metric metric) {
  bool wants_heap = is_heap(metric) || !format.holds_time();
  if (wants_heap && !contents.has_heap) {
    return fail_with_remedy("the run holds no allocations",
                            "take them with: assay heap TARGET, or assay record --heap TARGET");
  }
  if (wants_heap && !format.holds_heap()) {
    auto those =
        formats_with(written_formats(), [](const FormatSpec& other) { return other.holds_heap(); });
    return fail_with_remedy(fmt::format("{} holds times, not allocations", format.name),
                            "--format " + format_list(those));
  }
  return {};
}

// Which metric must have been recorded before zero of `metric` means zero: waits for locks were
// recorded where waits were, but a heap that was not sampled is unknown, not empty.
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

}  // namespace

bool shows_one(const ExportOptions& options) {
  return options.metric || options.format->one_metric;
}

// A heap profile has nothing else to show.
Metric default_metric(const run::Contents& contents) {
  if (!contents.is_heap_alone()) return Metric::cpu;
  bool live = !contents.heap_imported ||
              std::ranges::any_of(contents.heap_sums,
                                  [](const model::HeapSum& sum) { return sum.live_bytes > 0; });
  return live ? Metric::inuse_space : Metric::alloc_space;
}

Result<void> check_format(const run::Contents& contents, const ExportOptions& options) {
  Metric metric = options.metric.value_or(default_metric(contents));
  if (auto fits = check_heap(contents, *options.format, metric); !fits) return fits;
  if (!options.metric || is_heap(metric) || options.format->holds(metric)) return {};
  // A format of allocations alone shows them, whatever metric of time is asked for.
  if (!options.format->holds_time()) return {};
  return fail_with_remedy(std::string(options.format->refusal),
                          std::string(options.format->remedy));
}

Result<void> check_side(SelectedRun& side, const std::vector<TotalRow>& rows, Metric metric,
                        const ExportOptions& options) {
  if (auto fits = check_heap(side.contents(), *options.format, metric); !fits) return fits;
  if (auto known = check_evidence(side.contents(), metric); !known) return known;
  Metric needed = evidence_of(metric);
  bool any = has_any(rows, metric) || has_any(rows, needed);
  if (!any && !options.selection.is_whole()) {
    auto whole = SelectedRun::make(side.reader(), {});
    if (!whole) return std::unexpected(whole.error());
    auto all = sum_up(**whole);
    if (!all) return std::unexpected(all.error());
    any = has_any(*all, metric) || has_any(*all, needed);
  }
  if (any) return {};
  return std::unexpected(missing_metric(side.contents(), rows, metric));
}

Result<void> check_any(const SelectedRun& run, const std::vector<TotalRow>& rows,
                       const ExportOptions& options) {
  bool one = shows_one(options), narrowed = !options.selection.is_whole();
  Metric metric = options.metric.value_or(default_metric(run.contents()));
  if (auto known = check_evidence(run.contents(), metric); !known) return known;
  if (one ? has_any(rows, metric) || options.base != nullptr : !rows.empty()) return {};
  if (!narrowed) return std::unexpected(missing_metric(run.contents(), rows, metric));
  return fail_with_remedy(fmt::format("nothing in the run matches that selection{}",
                                      one ? fmt::format(" ({})", metric_title(metric)) : ""),
                          "assay export RUN --format csv lists functions and their times");
}

}  // namespace assay::formats
