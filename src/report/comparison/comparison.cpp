#include "report/comparison/comparison.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/comparison/comparison_words.h"
#include "report/printable.h"
#include "report/text/text_page.h"

namespace assay::report {
namespace {

using analysis::Change;
using analysis::ChangeKind;
using analysis::Comparison;
using analysis::Measure;
using analysis::Outcome;
using nlohmann::ordered_json;

constexpr int kNameWidth = 44;
constexpr int kMeasureWidth = 32;

// Functions lose their arguments, to be short; what stands in brackets elsewhere tells names apart.
std::string measure_name(const Measure& m) {
  return m.group == analysis::MeasureGroup::lock_group ? function_name(m.name, kMeasureWidth)
                                                       : fitted(m.name, kMeasureWidth);
}

void write_measures(const Comparison& comparison, TextPage& page) {
  page.heading("Measures",
               fmt::format("base, new, change with its 95 % interval; no change: within ±{:.1f} %",
                           comparison.no_change_within * 100));
  std::optional<analysis::MeasureGroup> group;
  for (const Measure& m : comparison.measures) {
    if (group && *group != m.group) {
      page.line(page.ink(Ink::dim, fmt::format("  {}", analysis::measure_group_name(m.group))));
    }
    group = m.group;
    bool shown = analysis::is_finding(m.outcome);
    std::string row = fmt::format("  {} {} {} {} {}", left(measure_name(m), kMeasureWidth),
                                  right(number(m.base), 10), right(number(m.next), 10),
                                  left(m.unit, 11), right(change_text(m), 9));
    page.line(fmt::format("{}  {}  {}", page.ink(shown ? Ink::bold : Ink::plain, row),
                          left(interval_text(m), 22), outcome_text(m.outcome)));
  }
}

void write_changes(const Comparison& comparison, TextPage& page) {
  page.heading("Functions that explain it", changes_heading(comparison));
  if (comparison.changes.empty()) page.line("  none");
  analysis::TimeUnit unit = analysis::time_unit(comparison.per);
  for (const Change& change : comparison.changes) {
    page.line(page.ink(
        Ink::bold, fmt::format("  {} {} → {} {} {}",
                               left(function_name(change.function, kNameWidth), kNameWidth),
                               right(number(change.time.base * unit.scale), 9),
                               left(number(change.time.next * unit.scale), 9), left(unit.name, 11),
                               right(change_text(change.time), 9))));
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

void write_heap_changes(const Comparison& comparison, TextPage& page) {
  if (!comparison.has_heap) return;
  page.heading("Heap: sites that changed", heap_heading(comparison));
  if (comparison.heap_changes.empty()) page.line("  none");
  for (const analysis::HeapChange& change : comparison.heap_changes) {
    std::string kind =
        change.kind == ChangeKind::changed ? "" : fmt::format("; {}", kind_text(change.kind));
    page.line(fmt::format(
        "  {} {}",
        page.ink(Ink::bold, left(function_name(change.function, kNameWidth), kNameWidth)),
        page.ink(Ink::dim, printable(site_text(change)) + kind)));
    for (const HeapPart& part : heap_parts(change, comparison)) {
      page.line(fmt::format("      {} {} → {} {}  {}", left(part.what, 10), right(part.base, 16),
                            left(part.next, 16), right(change_text(*part.measure), 9),
                            interval_text(*part.measure)));
    }
  }
}

// Names of functions and locks are foreign text: as code, without what ends it.
std::string code(std::string_view text) {
  std::string safe;
  for (char c : fitted(text, 100)) safe += c == '`' || c == '|' || c == '<' ? ' ' : c;
  return "`" + safe + "`";
}

std::string markdown_text(std::string_view text) {
  std::string safe;
  for (char c : printable(text)) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '|' || c == '`' || c == '*' || c == '_' || c == '[')
      (safe += '\\') += c;
    else
      safe += c;
  }
  return safe;
}

std::string markdown_name(const Measure& m) {
  if (m.group == analysis::MeasureGroup::lock_group) return "lock " + code(m.name);
  if (m.group == analysis::MeasureGroup::category_group) return "CPU: " + markdown_text(m.name);
  return m.name;
}

ordered_json to_json(const Measure& m) {
  auto finite = [](double value) { return std::isfinite(value) ? ordered_json(value) : nullptr; };
  return {{"id", printable(m.id)},
          {"name", printable(m.name)},
          {"group", analysis::measure_group_name(m.group)},
          {"unit", m.unit},
          {"base", m.base},
          {"new", m.next},
          {"ratio", m.ratio},
          {"ratio_low", finite(m.low)},
          {"ratio_high", finite(m.high)},
          {"p", m.p},
          {"finding", analysis::outcome_name(m.outcome)}};
}

ordered_json to_json(const analysis::Yardstick& yardstick) {
  if (!yardstick.used) return nullptr;
  return {{"share_of_cpu", yardstick.share},
          {"ratio", yardstick.cost.ratio},
          {"ratio_low", yardstick.cost.low},
          {"ratio_high", yardstick.cost.high}};
}

ordered_json to_json(const analysis::Side& side) {
  ordered_json runs = ordered_json::array();
  for (const auto& run : side.runs) {
    ordered_json entry{{"path", printable(run.path)}, {"seconds", run.seconds},
                       {"samples", run.samples},      {"waits", run.waits},
                       {"cpu_ns", run.cpu_ns},        {"backend", run.info.backend}};
    if (run.requests > 0) entry["requests"] = run.requests;
    if (run.slowness != 1) entry["slowness"] = run.slowness;
    if (run.verdict) entry["verdict"] = analysis::verdict_kind_id(*run.verdict);
    runs.push_back(entry);
  }
  return runs;
}

ordered_json to_json(const analysis::SideVerdict& verdict) {
  return {{"kind", verdict.kind ? analysis::verdict_kind_id(*verdict.kind) : ""},
          {"sentence", printable(verdict.sentence)},
          {"agreeing", verdict.agreeing},
          {"runs", verdict.runs}};
}

std::string markdown_changes(const Comparison& comparison) {
  analysis::TimeUnit unit = analysis::time_unit(comparison.per);
  std::string out = fmt::format("\n{}\n\n", changes_heading(comparison));
  if (comparison.changes.empty()) return out + "No function's change was shown.\n";
  out += fmt::format(
      "| function | base {0} | new {0} | change | 95 % interval | what "
      "|\n|---|--:|--:|--:|---|---|\n",
      unit.name);
  for (const Change& c : comparison.changes) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(c.function),
                       number(c.time.base * unit.scale), number(c.time.next * unit.scale),
                       change_text(c.time), interval_text(c.time),
                       c.kind == ChangeKind::moved ? "moved: " + code(c.partner) : what_text(c));
  }
  return out;
}

std::string markdown_heap(const Comparison& comparison) {
  if (!comparison.has_heap) return "";
  std::string out = fmt::format("\nHeap: {}\n\n", heap_heading(comparison));
  if (comparison.heap_changes.empty()) return out + "No site's change was shown.\n";
  out +=
      "| site | where | what | base | new | change | 95 % interval |\n"
      "|---|---|---|--:|--:|--:|---|\n";
  for (const analysis::HeapChange& change : comparison.heap_changes) {
    for (const HeapPart& part : heap_parts(change, comparison)) {
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", code(change.function),
                         markdown_text(site_text(change)), part.what, part.base, part.next,
                         change_text(*part.measure), interval_text(*part.measure));
    }
  }
  return out;
}

// A change's number without the names that stand beside it.
ordered_json bare_json(const Measure& measure, const std::string& unit) {
  ordered_json entry = to_json(measure);
  for (const char* key : {"id", "name", "group"}) entry.erase(key);
  entry["unit"] = unit;
  return entry;
}

ordered_json to_json(const analysis::HeapChange& change, const Comparison& comparison) {
  analysis::Per per =
      comparison.per == analysis::Per::share ? analysis::Per::second : comparison.per;
  std::string unit = comparison.heap_timed ? fmt::format(" per {}", per_name(per)) : "";
  ordered_json json{{"kind", kind_text(change.kind)},
                    {"function", printable(change.function)},
                    {"module", printable(change.module)}};
  if (!change.file.empty()) json["file"] = printable(change.file);
  if (change.line > 0) json["line"] = change.line;
  json["allocated"] = bare_json(change.allocated, "bytes" + unit);
  json["objects"] = bare_json(change.objects, "objects" + unit);
  json["live"] = bare_json(change.live, "bytes");
  return json;
}

}  // namespace

std::string render_comparison_text(const Comparison& comparison, const Style& style) {
  TextPage page(style);
  page.paragraph("", comparison.sentence, 0, Ink::bold);
  page.line(fmt::format("base  {}", printable(runs_text(comparison.base))));
  page.line(fmt::format("new   {}", printable(runs_text(comparison.next))));
  if (!comparison.verdict_change.empty())
    page.paragraph("", comparison.verdict_change, 0, Ink::bold);
  std::string before = verdict_text(comparison.base_verdict);
  std::string after = verdict_text(comparison.next_verdict);
  if (!before.empty()) page.paragraph("was   ", before, 6);
  if (!after.empty()) page.paragraph("is    ", after, 6);
  for (const std::string& warning : comparison.warnings) page.paragraph("! ", warning, 2);
  write_measures(comparison, page);
  write_changes(comparison, page);
  write_heap_changes(comparison, page);
  return page.take();
}

std::string render_comparison_markdown(const Comparison& comparison) {
  std::string out = fmt::format("**{}**\n\n", markdown_text(comparison.sentence));
  if (!comparison.verdict_change.empty())
    out += fmt::format("{}\n\n", markdown_text(comparison.verdict_change));
  for (const auto& [name, verdict] :
       {std::pair{"was", &comparison.base_verdict}, std::pair{"is", &comparison.next_verdict}}) {
    if (verdict->kind)
      out += fmt::format("- {}: {}\n", name, markdown_text(verdict_text(*verdict)));
  }
  if (comparison.base_verdict.kind) out += "\n";
  for (const std::string& warning : comparison.warnings)
    out += "> ⚠ " + markdown_text(warning) + "\n";
  out +=
      "\n| measure | base | new | unit | change | 95 % interval | "
      "|\n|---|--:|--:|---|--:|---|---|\n";
  for (const Measure& m : comparison.measures) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", markdown_name(m), number(m.base),
                       number(m.next), m.unit, change_text(m), interval_text(m),
                       outcome_text(m.outcome));
  }
  return out + markdown_changes(comparison) + markdown_heap(comparison);
}

std::string render_comparison_json(const Comparison& comparison) {
  ordered_json out{{"schema_version", 1},
                   {"sentence", printable(comparison.sentence)},
                   {"per", analysis::per_name(comparison.per)},
                   {"descriptive", comparison.descriptive},
                   {"floor", analysis::kSmallestFloor},
                   {"no_change_within", comparison.no_change_within},
                   {"yardstick", to_json(comparison.yardstick)},
                   {"functions_tested", comparison.functions_tested},
                   {"verdict",
                    {{"sentence", printable(comparison.verdict_change)},
                     {"base", to_json(comparison.base_verdict)},
                     {"new", to_json(comparison.next_verdict)}}},
                   {"base", to_json(comparison.base)},
                   {"new", to_json(comparison.next)},
                   {"warnings", ordered_json::array()},
                   {"measures", ordered_json::array()},
                   {"changes", ordered_json::array()}};
  for (const std::string& warning : comparison.warnings)
    out["warnings"].push_back(printable(warning));
  for (const Measure& measure : comparison.measures) out["measures"].push_back(to_json(measure));
  for (const Change& change : comparison.changes) {
    ordered_json entry =
        bare_json(change.time, fmt::format("ns per {}", analysis::per_name(comparison.per)));
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
  if (comparison.has_heap) {
    out["heap_sites_tested"] = comparison.heap_sites_tested;
    out["heap_changes"] = ordered_json::array();
    for (const analysis::HeapChange& change : comparison.heap_changes)
      out["heap_changes"].push_back(to_json(change, comparison));
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace assay::report
