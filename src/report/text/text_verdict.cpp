// The sections that answer: verdict, findings, locks, categories, next step.
#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kFindingsShown = 6;
constexpr size_t kResourcesShown = 8;
constexpr size_t kLocksShown = 5;
constexpr size_t kCategoriesShown = 12;
constexpr size_t kClearedShown = 8;
constexpr double kSmallestView = 0.01;
constexpr int kShareColumns = 8;

void write_evidence(const analysis::Evidence& one, TextPage& page) {
  page.paragraph("        ", one.text, 8);
  if (!one.frames.empty()) page.stack(one.frames, 5);
  for (size_t i = 0; i < one.source.size(); ++i) {
    page.line(page.ink(Ink::dim, fmt::format("        {:>6} │ {}", one.source_line + i,
                                             fitted(one.source[i], page.width() - 17))));
  }
}

void write_finding(size_t number, const analysis::Finding& f, TextPage& page) {
  page.paragraph(page.ink(Ink::bold, fmt::format("  {}. ", number)), f.title, 5);
  std::vector<std::string> phrases;
  if (f.of != analysis::ShareOf::nothing) phrases.push_back(share_text(f));
  phrases.emplace_back(analysis::cause_id(f.cause));
  if (!f.where.symbol.empty()) {
    std::string where = where_text(f.where.file, f.where.line, "");
    phrases.push_back(where.empty()
                          ? function_name(f.where.symbol, 60)
                          : fmt::format("{} {}", function_name(f.where.symbol, 50), where));
  }
  page.phrases("     ", phrases, 5);
  page.paragraph("     why: ", f.because, 10);
  page.paragraph("     try: ", f.recommendation, 10);
  if (!f.gain.text.empty()) page.paragraph("     gain: ", f.gain.text, 11);
  for (size_t i = 0; i < std::min<size_t>(1, f.evidence.size()); ++i)
    write_evidence(f.evidence[i], page);
}

void write_view(const std::vector<analysis::CategoryShare>& all, const std::string& breakdown,
                TextPage& page) {
  double known = 0;
  for (const auto& row : all) {
    if (row.category.breakdown == breakdown && row.category.id != "rest") known += row.share.share;
  }
  if (known < kSmallestView) return;
  std::string text;
  std::vector<std::string> phrases;
  for (const auto& row : all) {
    if (row.category.breakdown != breakdown || row.share.share < 0.001) continue;
    phrases.push_back(fmt::format("{} {}", row.category.name, format_percent(row.share.share)));
  }
  page.phrases(left("  " + breakdown, 18), phrases, 18);
}

}  // namespace

void write_verdict(const analysis::Report& report, TextPage& page) {
  const analysis::Verdict& v = report.verdict;
  std::string remark = v.kind == analysis::VerdictKind::withheld
                           ? "withheld"
                           : fmt::format("{}, {} confidence", analysis::verdict_kind_id(v.kind),
                                         confidence_text(v.confidence));
  page.heading("Verdict", remark);
  page.paragraph(page.ink(Ink::bold, "  "), v.sentence, 2);
  if (!v.numbers.empty()) page.phrases("  ", v.numbers, 2);
  for (size_t i = 0; i < v.remedies.size(); ++i) page.paragraph("  try: ", v.remedies[i], 7);
  for (const analysis::Claim& claim : v.secondary) {
    page.paragraph(v.kind == analysis::VerdictKind::withheld ? "  would be: " : "  also: ",
                   claim.sentence, v.kind == analysis::VerdictKind::withheld ? 12 : 8);
  }
  for (const analysis::SuspectAnswer& s : report.suspects) {
    page.paragraph("  suspect: ", fmt::format("{}: {}. {}", s.pattern, s.answer, s.text), 11);
  }
}

void write_resources(const analysis::Report& report, TextPage& page) {
  const analysis::Demands& d = report.demands;
  if (!d.known()) return;
  page.heading("Resources", resources_remark(d));
  page.line(page.ink(Ink::dim, fmt::format("{}{}{}{}  resource", right("busy", 8),
                                           right("per " + std::string(work_unit_id(d.unit)), 13),
                                           right("servers", 9), right("waiting", 9))));
  for (size_t i = 0; i < std::min(kResourcesShown, d.resources.size()); ++i) {
    const analysis::Resource& r = d.resources[i];
    ResourceWords words = resource_words(r);
    page.line(fmt::format("{}{}{}{}  {}", right(words.busy, 8), right(words.demand, 13),
                          right(words.servers, 9), right(words.waiting, 9),
                          fitted(words.name, page.width() - 41)));
  }
}

void write_findings(const analysis::Report& report, TextPage& page) {
  if (!report.findings.empty()) {
    size_t shown = std::min(kFindingsShown, report.findings.size());
    std::string more =
        report.findings.size() > shown
            ? fmt::format("the first {} of {}; they may overlap", shown, report.findings.size())
            : "they may overlap";
    page.heading("Findings", more);
    for (size_t i = 0; i < shown; ++i) write_finding(i + 1, report.findings[i], page);
  } else {
    page.heading("Findings", "none: no detector's threshold was reached");
  }
  if (report.not_bottlenecks.empty()) return;
  page.heading("Not a bottleneck", "common suspects that this run rules out");
  for (size_t i = 0; i < std::min(kClearedShown, report.not_bottlenecks.size()); ++i) {
    const analysis::NotBottleneck& n = report.not_bottlenecks[i];
    page.paragraph("  ", fmt::format("{}: {}", n.what, n.text), 4);
  }
}

void write_locks(const analysis::Report& report, TextPage& page) {
  if (report.locks.empty()) return;
  page.heading("Locks", "longest total wait first");
  page.line(page.ink(Ink::dim, fmt::format("{}{}{}{}{}{}  lock", right("total", 10),
                                           right("waits", 8), right("mean", 10), right("p99", 10),
                                           right("contended", 11), right("waiters avg/max", 17))));
  for (size_t i = 0; i < std::min(kLocksShown, report.locks.size()); ++i) {
    const analysis::LockSummary& lock = report.locks[i];
    page.line(fmt::format(
        "{}{}{}{}{}{}  {}", right(format_duration(lock.total_ns), 10),
        right(format_count(lock.waits), 8), right(format_duration(lock.mean_ns), 10),
        right(format_duration(lock.p99_ns), 10), right(format_percent(lock.waited_share), 11),
        right(fmt::format("{:.1f}/{}", lock.mean_waiters, lock.most_waiters), 17),
        fitted(lock.name, page.width() - 68)));
    std::vector<std::string> phrases{std::string(analysis::lock_shape_id(lock.shape))};
    for (size_t w = 0; w < std::min<size_t>(2, lock.waiters.size()); ++w) {
      const analysis::LockWaiter& waiter = lock.waiters[w];
      std::string where = where_text(waiter.file, waiter.line, "");
      phrases.push_back(fmt::format("in {}{}{}", function_name(waiter.function, 40),
                                    where.empty() ? "" : " ", where));
    }
    for (size_t h = 0; h < std::min<size_t>(2, lock.holders.size()); ++h) {
      const analysis::LockHolder& holder = lock.holders[h];
      phrases.push_back(
          fmt::format("released by {}{} ({}×)", holder.thread,
                      holder.function.empty() ? "" : " in " + function_name(holder.function, 40),
                      format_count(holder.waits)));
    }
    page.phrases("          ", phrases, 10);
  }
}

void write_categories(const analysis::Report& report, TextPage& page) {
  if (report.categories.empty()) return;
  page.heading("CPU by subsystem", "each sample once; “within” includes callees; rows overlap");
  page.line(page.ink(Ink::dim, fmt::format("{}{}{}  subsystem", right("CPU", kShareColumns),
                                           right("95 % interval", 15), right("within", 9))));
  size_t shown = 0;
  double rest = 0;
  for (const analysis::CategoryShare& row : report.categories) {
    if (row.category.breakdown != analysis::kSubsystem) continue;
    if (shown++ >= kCategoriesShown) {
      rest += row.share.share;
      continue;
    }
    page.line(fmt::format("{}{}{}  {}  {}", right(format_percent(row.share.share), kShareColumns),
                          right(interval_text(row.share), 15),
                          right(format_percent(row.inclusive_share), 9),
                          left(row.category.name, 28),
                          page.ink(Ink::dim, function_name(row.top_function, page.width() - 66))));
  }
  if (rest > 0) page.line(fmt::format("{}  the rest", right(format_percent(rest), kShareColumns)));
  std::vector<std::string> views;
  for (const analysis::CategoryShare& row : report.categories) {
    const std::string& name = row.category.breakdown;
    if (name != analysis::kSubsystem && (views.empty() || views.back() != name))
      views.push_back(name);
  }
  for (const std::string& view : views) write_view(report.categories, view, page);
}

void write_next_step(const analysis::Report& report, TextPage& page) {
  if (report.verdict.next_step.empty()) return;
  page.heading("Next", "");
  page.paragraph("  ", report.verdict.next_step, 2);
  if (!report.verdict.next_command.empty()) {
    page.paragraph("  $ ", report.verdict.next_command, 4);
  }
}

}  // namespace assay::report
