// The sections on functions, paths and waits.
#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kFunctionsShown = 15;
constexpr size_t kPathsShown = 5;
constexpr size_t kWaitsShown = 8;
constexpr size_t kPathLines = 8;
constexpr size_t kWaitLines = 8;
constexpr int kWhereColumns = 24;

// Nothing ran: where that is a fact and where it is a gap in the evidence.
std::string_view why_no_samples(const analysis::Report& report) {
  if (is_imported(report.run_kind)) return "no samples: the imported profile has none";
  return report.thread_time.running_ns() > 0 ? "no samples were taken, though threads ran"
                                             : "no samples: no thread ran long enough to be seen";
}

}  // namespace

void write_functions(const analysis::Report& report, TextPage& page) {
  const analysis::OnCpuProfile& cpu = report.on_cpu;
  if (cpu.samples == 0) {
    page.heading("Hottest functions, on-CPU", why_no_samples(report));
    return;
  }
  bool timed = !is_of_counts(report.run_kind);
  page.heading(timed ? "Hottest functions, on-CPU" : "Functions",
               fmt::format("{} in {} samples; totals overlap, self {} add up",
                           amount_text(report, cpu.time_ns), grouped(cpu.samples),
                           timed ? "times" : "counts"));
  int name_columns = page.width() - (8 + 15 + 9 + 2 + 2 + kWhereColumns);
  page.line(page.ink(Ink::dim,
                     fmt::format("{}{}{}  {}  where", right("self", 8), right("95 % interval", 15),
                                 right("total", 9), left("function", name_columns))));
  for (size_t i = 0; i < std::min(kFunctionsShown, cpu.functions.size()); ++i) {
    const analysis::HotFunction& f = cpu.functions[i];
    if (f.self_samples == 0) break;  // what follows only calls
    std::string where =
        f.kind == analysis::CodeKind::marker ? "" : where_text(f.file, f.line, f.module);
    page.line(fmt::format("{}{}{}  {}  {}", right(format_percent(f.self.share), 8),
                          right(interval_text(f.self), 15), right(format_percent(f.total.share), 9),
                          left(function_name(f.name, name_columns), name_columns),
                          page.ink(Ink::dim, fitted(where, kWhereColumns))));
  }
}

void write_paths(const analysis::Report& report, TextPage& page) {
  if (report.on_cpu.paths.empty()) return;
  bool timed = !is_of_counts(report.run_kind);
  page.heading(timed ? "Hottest paths, on-CPU" : "Paths", "innermost function first");
  for (size_t i = 0; i < std::min(kPathsShown, report.on_cpu.paths.size()); ++i) {
    const analysis::HotPath& path = report.on_cpu.paths[i];
    page.line(fmt::format("{}  {}  {}, {} sample{}", right(format_percent(path.share.share), 8),
                          page.ink(Ink::dim, "(" + interval_text(path.share) + ")"),
                          amount_text(report, path.time_ns), grouped(path.samples),
                          path.samples == 1 ? "" : "s"));
    page.stack(path.frames, kPathLines);
  }
}

void write_waits(const analysis::Report& report, TextPage& page) {
  const analysis::OffCpuProfile& off = report.off_cpu;
  if (off.paths.empty()) {
    page.heading("Longest waits, off-CPU", "no thread blocked");
    return;
  }
  page.heading("Longest waits, off-CPU",
               fmt::format("{} in {} waits; run-queue time not included",
                           format_duration(off.time_ns), grouped(off.waits)));
  page.line(page.ink(Ink::dim, fmt::format("{}{}{}{}{}  {} by", right("total", 10),
                                           right("count", 8), right("mean", 10), right("p99", 10),
                                           right("max", 12), left("kind", 20))));
  for (size_t i = 0; i < std::min(kWaitsShown, off.paths.size()); ++i) {
    const analysis::WaitSummary& wait = off.paths[i];
    // A wait cut by the window lasted at least this long.
    std::string max = (wait.cut > 0 ? "≥ " : "") + format_duration(wait.max_ns);
    std::string head =
        fmt::format("{}{}{}{}{}  ", right(format_duration(wait.total_ns), 10),
                    right(format_count(wait.count), 8), right(format_duration(wait.mean_ns), 10),
                    right(format_duration(wait.p99_ns), 10), right(max, 12));
    int room = page.width() - 52 - 21;
    page.line(fmt::format("{}{} {}", head,
                          page.ink(wait.idle ? Ink::idle : Ink::blocked, left(kind_text(wait), 20)),
                          fitted(pools_text(wait), room)));
    page.stack(wait.frames, kWaitLines);
  }
}

}  // namespace assay::report
