#include "analysis/compare/sentence.h"

#include <fmt/format.h>

#include "model/display_name.h"

namespace assay::analysis {
namespace {

const Measure* main_measure(const Comparison& comparison) {
  for (const Measure& measure : comparison.measures) {
    if (measure.id.starts_with("cpu_per") || measure.id.starts_with("user_per")) return &measure;
  }
  // Profiles of the heap alone.
  for (const Measure& measure : comparison.measures) {
    if (measure.id.starts_with("heap_allocated")) return &measure;
  }
  return nullptr;
}

std::string change_of(const Measure& measure) {
  return fmt::format("{:+.1f} %", (measure.ratio - 1) * 100);
}

std::string interval_of(const Measure& measure) {
  return fmt::format("95 % interval {:+.1f} to {:+.1f} %", (measure.low - 1) * 100,
                     (measure.high - 1) * 100);
}

// A difference that is there, but perhaps smaller than what is called a change, is not "none"; nor
// is one that is large, and yet not sure enough for one of several measures asked at once.
std::string undecided_text(const std::string& what, const Measure& measure) {
  bool differs = measure.low > 1 || measure.high < 1;
  bool large = measure.low > 1 + kSmallestFloor || measure.high < 1 / (1 + kSmallestFloor);
  if (large)
    return fmt::format(
        "{} differs by {} ({}), which is not yet sure enough among all that was asked: more runs "
        "would tell.",
        what, change_of(measure), interval_of(measure));
  if (differs)
    return fmt::format(
        "{} differs by {} ({}): not shown to be more than the {:.0f} % from which on "
        "it is called a change.",
        what, change_of(measure), interval_of(measure), kSmallestFloor * 100);
  return fmt::format("{}: no change shown ({}), but these runs cannot exclude one ({}).", what,
                     change_of(measure), interval_of(measure));
}

std::string whole_runs(const Comparison& comparison, const Measure& measure) {
  std::string what = comparison.per == Per::share
                         ? "The share of CPU time " + measure.name
                         : measure.name + " per " + std::string(per_name(comparison.per));
  switch (measure.outcome) {
    case Outcome::higher:
    case Outcome::lower:
      return fmt::format("{} changed by {} ({}).", what, change_of(measure), interval_of(measure));
    case Outcome::no_change:
      return fmt::format(
          "{} did not change: with 95 % confidence the difference is within ±{:.1f} %.", what,
          comparison.no_change_within * 100);
    case Outcome::undecided:
      return undecided_text(what, measure);
    case Outcome::descriptive:
      return fmt::format(
          "{}: {}. With one run on a side this describes those runs; it does not show a change.",
          what, change_of(measure));
  }
  return "";
}

std::string changed_text(const Change& change) {
  std::string name = model::short_name(change.function);
  switch (change.kind) {
    case ChangeKind::changed:
      return fmt::format("{} ({})", name, change_of(change.time));
    case ChangeKind::appeared:
      return name + " (new)";
    case ChangeKind::vanished:
      return name + " (gone)";
    case ChangeKind::moved:
      return name + " (only moved)";
  }
  return name;
}

// Whole runs may hide what one function did.
std::string functions_changed(const Comparison& comparison) {
  if (comparison.descriptive || comparison.changes.empty()) return "";
  std::string first = changed_text(comparison.changes.front());
  size_t others = comparison.changes.size() - 1;
  if (others == 0) return fmt::format(" One function changed: {}.", first);
  return fmt::format(" {} functions changed, most of all {}.", others + 1, first);
}

}  // namespace

std::string sentence_of(const Comparison& comparison) {
  const Measure* measure = main_measure(comparison);
  if (measure == nullptr) {
    if (comparison.measures.empty() && comparison.changes.empty())
      return "The runs hold no CPU time to compare.";
    return comparison.descriptive
               ? "With one run on a side this describes those runs; it does not show a change."
               : "Shares of the samples are compared." + functions_changed(comparison);
  }
  return whole_runs(comparison, *measure) + functions_changed(comparison);
}

}  // namespace assay::analysis
