#include "report/comparison/comparison_words.h"

#include <cmath>

#include <fmt/format.h>

#include "report/text/heap_words.h"

namespace assay::report {

using analysis::Change;
using analysis::ChangeKind;
using analysis::Comparison;
using analysis::Measure;
using analysis::Outcome;

std::string change_text(double ratio) {
  if (ratio >= 10) return fmt::format("×{:.0f}", ratio);
  return fmt::format("{:+.1f} %", (ratio - 1) * 100);
}

std::string change_text(const Measure& measure) {
  if (measure.base == 0 && measure.next > 0) return "new";
  if (measure.next == 0 && measure.base > 0) return "gone";
  return change_text(measure.ratio);
}

std::string interval_text(const Measure& measure) {
  if (!std::isfinite(measure.low) || !std::isfinite(measure.high) || measure.high > 1e6) return "";
  if (measure.base == 0 || measure.next == 0) return "";  // of nothing there is no ratio
  return fmt::format("{} … {}", change_text(measure.low), change_text(measure.high));
}

std::string_view outcome_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::higher:
      return "higher";
    case Outcome::lower:
      return "lower";
    case Outcome::no_change:
      return "no change";
    case Outcome::undecided:
      return "not shown";
    case Outcome::descriptive:
      return "";
  }
  return "";
}

std::string_view kind_text(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::changed:
      return "changed";
    case ChangeKind::appeared:
      return "new";
    case ChangeKind::vanished:
      return "vanished";
    case ChangeKind::moved:
      return "moved";
  }
  return "";
}

std::string number(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string runs_text(const analysis::Side& side) {
  if (side.runs.size() == 1) return side.runs.front().path;
  return fmt::format("{} runs: {} …", side.runs.size(), side.runs.front().path);
}

std::string what_text(const Change& change) {
  if (change.kind == ChangeKind::moved)
    return fmt::format("only moved between it and {}", change.partner);
  if (change.kind != ChangeKind::changed) return std::string(kind_text(change.kind));
  return change.with_callees ? "including callees" : "its own time";
}

std::string changes_heading(const Comparison& comparison) {
  if (comparison.descriptive) return "one run on a side: the largest differences, not findings";
  return fmt::format("of {} tested; beyond ±{:.0f} %{}", comparison.functions_tested,
                     analysis::kSmallestFloor * 100,
                     comparison.yardstick.used ? ", at the same speed of the machine" : "");
}

std::string heap_heading(const Comparison& comparison) {
  if (comparison.descriptive)
    return "one run on a side: differences beyond the sampler's error, not findings";
  return fmt::format("{} sites tested together; changes beyond ±{:.0f} %",
                     comparison.heap_sites_tested, analysis::kSmallestFloor * 100);
}

std::vector<HeapPart> heap_parts(const analysis::HeapChange& change, const Comparison& comparison) {
  std::string unit = !comparison.heap_timed                     ? ""
                     : comparison.per == analysis::Per::request ? "/request"
                     : comparison.per == analysis::Per::run     ? "/run"
                                                                : "/s";
  std::vector<HeapPart> all{
      {"allocated", bytes_text(change.allocated.base) + unit,
       bytes_text(change.allocated.next) + unit, &change.allocated},
      {"objects", number(change.objects.base) + unit, number(change.objects.next) + unit,
       &change.objects},
      {"live", bytes_text(change.live.base), bytes_text(change.live.next), &change.live}};
  std::erase_if(all, [](const HeapPart& part) {
    Outcome outcome = part.measure->outcome;
    bool described = outcome == Outcome::descriptive && part.measure->ratio != 1;
    return !described && outcome != Outcome::higher && outcome != Outcome::lower;
  });
  return all;
}

std::string site_text(const analysis::HeapChange& change) {
  std::string file = change.file.substr(change.file.rfind('/') + 1);
  if (file.empty()) return change.module.empty() ? "?" : change.module;
  return change.line > 0 ? fmt::format("{}:{}", file, change.line) : file;
}

std::string verdict_text(const analysis::SideVerdict& verdict) {
  if (!verdict.kind) return "";
  std::string agree = verdict.agreeing == verdict.runs
                          ? ""
                          : fmt::format(" (in {} of {} runs)", verdict.agreeing, verdict.runs);
  return fmt::format("{}{}: {}", analysis::verdict_kind_id(*verdict.kind), agree, verdict.sentence);
}

}  // namespace assay::report
