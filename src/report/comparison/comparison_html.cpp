#include "report/comparison/comparison_html.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "report/comparison/comparison_words.h"
#include "report/printable.h"

namespace assay::report {
namespace {

using analysis::Change;
using analysis::Comparison;
using analysis::Measure;
using analysis::Outcome;

constexpr std::string_view kStyle = R"CSS(
:root{color-scheme:light dark;--bg:#fff;--ink:#1d2430;--dim:#667085;--line:#e3e6eb;--more:#c2590b;--less:#1d62b3;--card:#f6f7f9}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--ink:#e7eaef;--dim:#98a2b3;--line:#2b313b;--more:#f0a35e;--less:#7ab2f2;--card:#1c2027}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1262px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:24px;line-height:1.3;margin:0 0 4px}
h2{font-size:17px;margin:36px 0 4px}
.sub{color:var(--dim);margin:0 0 12px}
.verdicts{display:grid;grid-template-columns:1fr 1fr;gap:16px;margin:20px 0}
.verdicts div{background:var(--card);border-radius:10px;padding:14px 16px}
.verdicts b{display:block;font-size:12px;letter-spacing:.04em;text-transform:uppercase;color:var(--dim);font-weight:600}
.warn{border-left:3px solid #d9a400;padding:4px 12px;margin:6px 0;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--dim);font-size:12px;text-align:left;border-bottom:1px solid var(--line)}
td,th{padding:5px 10px 5px 0;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
tr.group td{padding-top:16px;font-weight:600}
tr.quiet{color:var(--dim)}
.higher{color:var(--more);font-weight:600}.lower{color:var(--less);font-weight:600}
code{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}
.bar{width:170px}.bar svg{display:block}
iframe{border:1px solid var(--line);border-radius:10px;background:#fff;width:100%;max-width:1202px}
.wide{overflow-x:auto}
@media(max-width:760px){.verdicts{grid-template-columns:1fr}.bar{display:none}}
)CSS";

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// Orange is dearer and blue cheaper; of throughput and idle time less is dearer.
Outcome as_cost(const Measure& m) {
  bool more_is_better = m.id == "throughput" || m.id.starts_with("idle_per_");
  if (!more_is_better) return m.outcome;
  if (m.outcome == Outcome::higher) return Outcome::lower;
  return m.outcome == Outcome::lower ? Outcome::higher : m.outcome;
}

const char* outcome_class(const Measure& m) {
  Outcome outcome = as_cost(m);
  if (outcome == Outcome::higher) return "higher";
  if (outcome == Outcome::lower) return "lower";
  return "";
}

// The interval of the change on a line from −50 % to +100 %, with the floor behind it.
std::string bar(const Measure& m) {
  constexpr double floor = analysis::kSmallestFloor;
  if (!std::isfinite(m.low) || !std::isfinite(m.high) || m.low <= 0) return "";
  auto x = [](double ratio) { return 80 + std::clamp(std::log2(ratio), -1.0, 1.0) * 76; };
  double low = x(m.low), high = x(m.high), width = std::max(1.0, high - low);
  Outcome cost = as_cost(m);
  const char* colour = cost == Outcome::higher  ? "var(--more)"
                       : cost == Outcome::lower ? "var(--less)"
                                                : "var(--dim)";
  return fmt::format(
      "<svg width='160' height='18' aria-hidden='true'><rect x='{:.1f}' y='1' width='{:.1f}' "
      "height='16' fill='var(--line)'/><line x1='80' x2='80' y1='0' y2='18' "
      "stroke='var(--dim)'/><rect x='{:.1f}' y='7' width='{:.1f}' height='4' rx='2' "
      "fill='{}'/><circle cx='{:.1f}' cy='9' r='4' fill='{}'/></svg>",
      x(1 / (1 + floor)), x(1 + floor) - x(1 / (1 + floor)), low, width, colour, x(m.ratio),
      colour);
}

std::string measure_row(const Measure& m) {
  bool finding = analysis::is_finding(m.outcome);
  bool lock = m.group == analysis::MeasureGroup::lock_group;
  std::string name = lock ? "<code>" + escaped(m.name) + "</code>" : escaped(m.name);
  return fmt::format(
      "<tr{}><td>{}</td><td class=n>{}</td><td class=n>{}</td><td>{}</td><td class='n {}'>{}</td>"
      "<td class=n>{}</td><td class=bar>{}</td><td>{}</td></tr>\n",
      finding ? "" : " class=quiet", name, number(m.base), number(m.next), escaped(m.unit),
      outcome_class(m), change_text(m), interval_text(m), bar(m), outcome_text(m.outcome));
}

std::string measures_table(const Comparison& comparison) {
  std::string out =
      "<div class=wide><table><thead><tr><th>measure<th class=n>before<th class=n>now<th><th "
      "class=n>change<th class=n>95 % interval<th class=bar>−50 … +100 "
      "%<th></tr></thead><tbody>\n";
  std::optional<analysis::MeasureGroup> group;
  for (const Measure& m : comparison.measures) {
    if (group && *group != m.group)
      out += fmt::format("<tr class=group><td colspan=8>{}</td></tr>\n",
                         analysis::measure_group_name(m.group));
    group = m.group;
    out += measure_row(m);
  }
  return out + "</tbody></table></div>\n";
}

std::string change_row(const Change& change, const analysis::TimeUnit& unit) {
  std::string callers;
  for (const std::string& caller : change.callers)
    callers += (callers.empty() ? "called by " : " ← ") + escaped(fitted(caller, 60));
  const char* direction = change.kind == analysis::ChangeKind::moved ? ""
                          : change.time.next > change.time.base      ? "higher"
                                                                     : "lower";
  return fmt::format(
      "<tr><td><code>{}</code><div class=sub>{} · {}{}{}</div></td><td class=n>{}</td><td "
      "class=n>{}</td><td class='n {}'>{}</td><td class=n>{}</td><td class=bar>{}</td></tr>\n",
      escaped(fitted(change.function, 200)), escaped(what_text(change)), escaped(change.module),
      callers.empty() ? "" : " · ", callers, number(change.time.base * unit.scale),
      number(change.time.next * unit.scale), direction, change_text(change.time),
      interval_text(change.time), bar(change.time));
}

std::string changes_table(const Comparison& comparison) {
  if (comparison.changes.empty()) return "<p>No function's change was shown.</p>\n";
  analysis::TimeUnit unit = analysis::time_unit(comparison.per);
  std::string out = fmt::format(
      "<div class=wide><table><thead><tr><th>function<th class=n>before {0}<th class=n>now {0}<th "
      "class=n>change<th class=n>95 % interval<th class=bar></tr></thead><tbody>\n",
      unit.name);
  for (const Change& change : comparison.changes) out += change_row(change, unit);
  return out + "</tbody></table></div>\n";
}

std::string heap_table(const Comparison& comparison) {
  if (!comparison.has_heap) return "";
  std::string out = fmt::format("<h2>Heap: sites that changed</h2><p class=sub>{}</p>\n",
                                escaped(heap_heading(comparison)));
  if (comparison.heap_changes.empty()) return out + "<p>No site's change was shown.</p>\n";
  out +=
      "<div class=wide><table><thead><tr><th>site<th><th class=n>before<th class=n>now<th "
      "class=n>change<th class=n>95 % interval<th class=bar></tr></thead><tbody>\n";
  for (const analysis::HeapChange& change : comparison.heap_changes) {
    for (const HeapPart& part : heap_parts(change, comparison)) {
      const char* direction = part.measure->next > part.measure->base ? "higher" : "lower";
      out += fmt::format(
          "<tr><td><code>{}</code><div class=sub>{} · {}</div></td><td>{}</td><td "
          "class=n>{}</td><td class=n>{}</td><td class='n {}'>{}</td><td class=n>{}</td><td "
          "class=bar>{}</td></tr>\n",
          escaped(fitted(change.function, 200)), kind_text(change.kind), escaped(site_text(change)),
          part.what, part.base, part.next, direction, change_text(*part.measure),
          interval_text(*part.measure), bar(*part.measure));
    }
  }
  return out + "</tbody></table></div>\n";
}

// The height that the SVG asks for, so that its frame needs no scroll bar.
int height_of(const std::string& svg) {
  size_t at = svg.find(" height=\"");
  int height = 600;
  if (at != svg.npos) std::from_chars(svg.data() + at + 9, svg.data() + svg.size(), height);
  return std::clamp(height, 100, 20'000);
}

std::string verdicts(const Comparison& comparison) {
  if (comparison.verdict_change.empty()) return "";
  return fmt::format(
      "<p class=sub>{}</p><div class=verdicts><div><b>before</b>{}</div><div><b>now</b>{}</div>"
      "</div>\n",
      escaped(comparison.verdict_change), escaped(verdict_text(comparison.base_verdict)),
      escaped(verdict_text(comparison.next_verdict)));
}

}  // namespace

std::string render_comparison_html(const Comparison& comparison, const std::string& svg) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content='width=device-width,initial-scale=1'><meta http-equiv=Content-Security-Policy "
      "content=\"default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline';frame-src "
      "data:\"><title>assay: what changed</title><style>{}</style></head><body><main>\n",
      kStyle);
  out += fmt::format("<h1>{}</h1>\n<p class=sub>before: {}<br>now: {}</p>\n",
                     escaped(comparison.sentence), escaped(runs_text(comparison.base)),
                     escaped(runs_text(comparison.next)));
  out += verdicts(comparison);
  for (const std::string& warning : comparison.warnings)
    out += fmt::format("<p class=warn>{}</p>\n", escaped(warning));
  out += fmt::format("<h2>Functions that explain it</h2><p class=sub>{}</p>\n",
                     escaped(changes_heading(comparison)));
  out += changes_table(comparison);
  out += heap_table(comparison);
  out += "<h2>Where the time goes, and what changed</h2>\n";
  out += fmt::format(
      "<p class=sub>Every path once, as wide as the dearer side. Orange is dearer, blue cheaper, "
      "grey within noise.</p><div class=wide><iframe title='differential flame graph' "
      "sandbox=allow-scripts height={} style='min-width:1202px' "
      "src='data:image/svg+xml;base64,{}'></iframe></div>\n",
      height_of(svg) + 4, base64(svg));
  out += "<h2>Measures</h2>\n" + measures_table(comparison);
  return out + "</main></body></html>\n";
}

}  // namespace assay::report
