#include "report/comparison.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/printable.h"
#include "report/text_page.h"

namespace assay::report {
namespace {

using analysis::Change;
using analysis::ChangeKind;
using analysis::Comparison;
using analysis::Measure;
using analysis::Outcome;
using analysis::Per;
using nlohmann::ordered_json;

constexpr int kNameWidth = 44;

std::string change_text(double ratio) {
  if (ratio >= 10) return fmt::format("×{:.0f}", ratio);
  return fmt::format("{:+.1f} %", (ratio - 1) * 100);
}

std::string interval_text(const Measure& measure) {
  if (!std::isfinite(measure.low) || !std::isfinite(measure.high) || measure.high > 1e6) return "";
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

// Times of functions in the unit of the comparison.
struct Unit {
  const char* name;
  double scale;
};
Unit unit_of(Per per) {
  if (per == Per::request) return {"µs/request", 1e-3};
  if (per == Per::second) return {"ms/s", 1e-6};
  return {"% of CPU", 100};
}

std::string runs_text(const analysis::Side& side) {
  if (side.runs.size() == 1) return side.runs.front().path;
  return fmt::format("{} runs: {} …", side.runs.size(), side.runs.front().path);
}

std::string what_text(const Change& change) {
  if (change.kind == ChangeKind::moved)
    return fmt::format("only moved between it and {}", change.partner);
  if (change.kind != ChangeKind::changed) return std::string(kind_text(change.kind));
  return change.with_callees ? "with all that it calls: called more or less often" : "its own time";
}

std::string changes_heading(const Comparison& comparison) {
  if (comparison.descriptive) return "one run on a side: the largest differences, not findings";
  return fmt::format(
      "{} functions tested together at 5 % false discoveries; changes beyond ±{:.1f} %",
      comparison.functions_tested, comparison.floor * 100);
}

void write_measures(const Comparison& comparison, TextPage& page) {
  page.heading("Measures", "base, new, change with its 95 % interval");
  for (const Measure& m : comparison.measures) {
    bool shown = m.outcome == Outcome::higher || m.outcome == Outcome::lower;
    std::string row =
        fmt::format("  {} {} {} {} {}", left(m.name, 26), right(number(m.base), 10),
                    right(number(m.next), 10), left(m.unit, 11), right(change_text(m.ratio), 9));
    page.line(fmt::format("{}  {}  {}", page.ink(shown ? Ink::bold : Ink::plain, row),
                          left(interval_text(m), 22), outcome_text(m.outcome)));
  }
}

void write_changes(const Comparison& comparison, TextPage& page) {
  page.heading("Functions that explain it", changes_heading(comparison));
  if (comparison.changes.empty()) page.line("  none");
  Unit unit = unit_of(comparison.per);
  for (const Change& change : comparison.changes) {
    page.line(page.ink(
        Ink::bold, fmt::format("  {} {} → {} {} {}",
                               left(function_name(change.function, kNameWidth), kNameWidth),
                               right(number(change.time.base * unit.scale), 9),
                               left(number(change.time.next * unit.scale), 9), left(unit.name, 11),
                               right(change_text(change.time.ratio), 9))));
    std::string from;
    for (const std::string& caller : change.callers)
      from += (from.empty() ? "" : " ← ") + function_name(caller, 30);
    page.paragraph(
        "      ",
        fmt::format("{}; {}{}{}", what_text(change),
                    printable(change.module.empty() ? "?" : change.module),
                    interval_text(change.time).empty() ? "" : "; " + interval_text(change.time),
                    from.empty() ? "" : "; called by " + from),
        6);
  }
}

ordered_json to_json(const Measure& m) {
  auto finite = [](double value) { return std::isfinite(value) ? ordered_json(value) : nullptr; };
  return {{"id", m.id},
          {"name", m.name},
          {"unit", m.unit},
          {"base", m.base},
          {"new", m.next},
          {"ratio", m.ratio},
          {"ratio_low", finite(m.low)},
          {"ratio_high", finite(m.high)},
          {"p", m.p},
          {"finding", analysis::outcome_name(m.outcome)}};
}

ordered_json to_json(const analysis::Side& side) {
  ordered_json runs = ordered_json::array();
  for (const auto& run : side.runs) {
    ordered_json entry{{"path", printable(run.path)}, {"seconds", run.seconds},
                       {"samples", run.samples},      {"waits", run.waits},
                       {"cpu_ns", run.cpu_ns},        {"backend", run.info.backend}};
    if (run.requests > 0) entry["requests"] = run.requests;
    if (!run.verdict.empty()) entry["verdict"] = run.verdict;
    runs.push_back(entry);
  }
  return runs;
}

// What held each side back, when its runs agree on it.
std::string verdict_of(const analysis::Side& side) {
  for (const auto& run : side.runs) {
    if (run.verdict != side.runs.front().verdict) return "its runs differ";
  }
  const auto& first = side.runs.front();
  return first.verdict.empty() ? "" : first.verdict + ": " + first.verdict_sentence;
}

}  // namespace

std::string render_comparison_text(const Comparison& comparison, const Style& style) {
  TextPage page(style);
  page.line(page.ink(Ink::bold, printable(comparison.sentence)));
  page.line(fmt::format("base  {}", printable(runs_text(comparison.base))));
  page.line(fmt::format("new   {}", printable(runs_text(comparison.next))));
  std::string before = verdict_of(comparison.base), after = verdict_of(comparison.next);
  if (!before.empty()) page.paragraph("was   ", before, 6);
  if (!after.empty()) page.paragraph("is    ", after, 6);
  for (const std::string& warning : comparison.warnings) page.paragraph("! ", warning, 2);
  write_measures(comparison, page);
  write_changes(comparison, page);
  return page.take();
}

std::string render_comparison_markdown(const Comparison& comparison) {
  auto code = [](std::string_view text) {
    std::string safe;
    for (char c : fitted(text, 100)) safe += c == '`' || c == '|' || c == '<' ? ' ' : c;
    return "`" + safe + "`";
  };
  std::string out = fmt::format("**{}**\n\n", printable(comparison.sentence));
  for (const std::string& warning : comparison.warnings) out += "> ⚠ " + printable(warning) + "\n";
  out +=
      "\n| measure | base | new | unit | change | 95 % interval | "
      "|\n|---|--:|--:|---|--:|---|---|\n";
  for (const Measure& m : comparison.measures) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", m.name, number(m.base),
                       number(m.next), m.unit, change_text(m.ratio), interval_text(m),
                       outcome_text(m.outcome));
  }
  Unit unit = unit_of(comparison.per);
  out += fmt::format("\n{}\n\n", changes_heading(comparison));
  if (comparison.changes.empty()) return out + "No function's change was shown.\n";
  out += fmt::format(
      "| function | base {0} | new {0} | change | 95 % interval | what "
      "|\n|---|--:|--:|--:|---|---|\n",
      unit.name);
  for (const Change& c : comparison.changes) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(c.function),
                       number(c.time.base * unit.scale), number(c.time.next * unit.scale),
                       change_text(c.time.ratio), interval_text(c.time),
                       c.kind == ChangeKind::moved ? "moved: " + code(c.partner) : what_text(c));
  }
  return out;
}

std::string render_comparison_json(const Comparison& comparison) {
  ordered_json out{{"schema_version", 1},
                   {"sentence", printable(comparison.sentence)},
                   {"per", analysis::per_name(comparison.per)},
                   {"descriptive", comparison.descriptive},
                   {"floor", comparison.floor},
                   {"functions_tested", comparison.functions_tested},
                   {"base", to_json(comparison.base)},
                   {"new", to_json(comparison.next)},
                   {"warnings", ordered_json::array()},
                   {"measures", ordered_json::array()},
                   {"changes", ordered_json::array()}};
  for (const std::string& warning : comparison.warnings)
    out["warnings"].push_back(printable(warning));
  for (const Measure& measure : comparison.measures) out["measures"].push_back(to_json(measure));
  for (const Change& change : comparison.changes) {
    ordered_json entry = to_json(change.time);
    entry.erase("id");
    entry.erase("name");
    entry["unit"] = fmt::format("ns per {}", analysis::per_name(comparison.per));
    entry["kind"] = kind_text(change.kind);
    entry["function"] = printable(change.function);
    entry["module"] = printable(change.module);
    entry["with_callees"] = change.with_callees;
    entry["share_of_base"] = change.share_of_base;
    entry["share_of_new"] = change.share_of_next;
    entry["callers"] = ordered_json::array();
    for (const std::string& caller : change.callers) entry["callers"].push_back(printable(caller));
    if (!change.partner.empty()) entry["partner"] = printable(change.partner);
    out["changes"].push_back(std::move(entry));
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace assay::report
