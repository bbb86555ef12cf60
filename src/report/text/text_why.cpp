#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/text/text.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

std::string percent_of(uint64_t part, uint64_t whole) {
  return format_percent(static_cast<double>(part) / static_cast<double>(whole));
}

// Who ended the waits, and what is done on the way to them: what the decision rests on.
std::vector<std::string> evidence(const analysis::IdleDecision& one) {
  std::vector<std::string> phrases{
      fmt::format("{} of thread time", format_percent(one.share)),
      fmt::format("{} {}, {} in all", format_count(one.waits), one.waits == 1 ? "wait" : "waits",
                  format_duration(one.time_ns))};
  if (one.candidates == 0) return phrases;
  if (one.ended_by_target > 0) {
    phrases.push_back(fmt::format("{} ended by other pools of the target",
                                  percent_of(one.ended_by_target, one.candidates)));
  }
  if (one.ended_by_pool > 0) {
    phrases.push_back(
        fmt::format("{} ended by its own pool", percent_of(one.ended_by_pool, one.candidates)));
  }
  uint64_t threads = std::min(one.candidates, one.ended_by_target + one.ended_by_pool);
  if (threads < one.candidates) {
    phrases.push_back(fmt::format("{} ended by network, time or others",
                                  percent_of(one.candidates - threads, one.candidates)));
  }
  phrases.push_back(
      fmt::format("{} of the pool's work on the way to it", format_percent(one.branch_work)));
  return phrases;
}

void write_decision(const analysis::IdleDecision& one, TextPage& page) {
  const analysis::IdleReasonRow& reason = analysis::describe(one.reason);
  std::string process =
      one.role.empty() ? fmt::format("{}", one.pid) : fmt::format("{} ({})", one.pid, one.role);
  page.line();
  page.line(page.ink(Ink::bold,
                     fitted(fmt::format("{}  {}", printable(one.pool), process), page.width())));
  page.paragraph("  ", fmt::format("{} in {}", analysis::block_kind_name(one.kind), one.site), 4);
  std::string because = fmt::format("because {}", reason.because);
  if (!one.rule.empty()) because += fmt::format(" ({})", one.rule);
  page.paragraph(fmt::format("  {} ", page.ink(reason.idle ? Ink::idle : Ink::blocked,
                                               reason.idle ? "idle" : "not idle")),
                 because, 4);
  page.phrases("  ", evidence(one), 4);
}

}  // namespace

std::string render_why_idle(const analysis::Report& report, const Style& style) {
  TextPage page(style);
  page.heading("Why idle", "places with at least 1 % of the thread time");
  if (report.idle_decisions.empty()) page.line("no thread waited that long anywhere");
  for (const analysis::IdleDecision& one : report.idle_decisions) write_decision(one, page);
  return page.take();
}

}  // namespace assay::report
