#include "formats/export/missing_metric.h"

#include <algorithm>

namespace assay::formats {
namespace {

constexpr const char* kRecordWaits =
    "record them: assay record TARGET; of perf: perf record --switch-events";

bool knows_no_waits(const run::Contents& contents) {
  return std::ranges::any_of(contents.facts, [](const model::Fact& fact) {
    return fact.scope == "import" && fact.key == "waits" && fact.value == "absent";
  });
}

Error without_cpu(const std::vector<TotalRow>& rows) {
  const char* remedy = "assay record TARGET while it works";
  if (has_any(rows, Metric::off)) remedy = "--metric off shows its waits";
  if (has_any(rows, Metric::alloc_space)) remedy = "--metric inuse_space or alloc_space";
  return {"the run holds no on-CPU samples", remedy, 0};
}

Error without_waits(const run::Contents& contents) {
  return {knows_no_waits(contents) ? "the run says nothing of time off the CPU"
                                   : "the run holds no waits: no thread was blocked",
          kRecordWaits, 0};
}

}  // namespace

bool has_any(const std::vector<TotalRow>& rows, Metric metric) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const TotalRow& row) { return row.of(metric) > 0; });
}

Error missing_metric(const run::Contents& contents, const std::vector<TotalRow>& rows,
                     Metric metric) {
  if (!is_heap(metric) && contents.is_heap_alone()) {
    return {"the run is of the heap alone: it holds no time",
            "assay record TARGET; --metric inuse_space or alloc_space shows the heap", 0};
  }
  switch (metric) {
    case Metric::cpu:
    case Metric::samples:
      return without_cpu(rows);
    case Metric::off:
    case Metric::waits:
      return without_waits(contents);
    case Metric::wall:
      return {"the run holds neither on-CPU samples nor waits",
              "assay record TARGET while it works", 0};
    case Metric::lock:
      if (!has_any(rows, Metric::off)) return without_waits(contents);
      return {"no wait of the run is for a lock",
              "assay record TARGET while its threads contend; --metric off shows what they waited "
              "for",
              0};
    case Metric::runqueue:
      if (knows_no_waits(contents)) return without_waits(contents);
      return {"no thread of the run waited for a CPU, as far as the capture could see",
              "assay record TARGET under load; --metric off shows what threads waited for", 0};
    case Metric::inuse_space:
    case Metric::inuse_objects:
      if (!has_any(rows, Metric::alloc_space)) break;
      return {"nothing that was sampled is still allocated at the end",
              "--metric alloc_space shows what was allocated", 0};
    case Metric::alloc_space:
    case Metric::alloc_objects:
      break;
  }
  return {"no allocation was sampled", "assay heap TARGET --rate 16k, a longer --for, or some load",
          0};
}

Result<void> check_evidence(const run::Contents& contents, Metric metric) {
  if (metric != Metric::wall || !knows_no_waits(contents)) return {};
  return fail_with_remedy(
      "the run says nothing of time off the CPU: its wall time would be CPU time alone",
      fmt::format("--metric cpu, or {}", kRecordWaits));
}

}  // namespace assay::formats
