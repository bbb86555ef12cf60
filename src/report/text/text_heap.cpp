// The heap section of the text report.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/heap/heap_findings.h"
#include "base/units.h"
#include "report/printable.h"
#include "report/text/heap_words.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kSitesShown = 12;
constexpr size_t kStacksShown = 3;
constexpr size_t kStackLines = 8;
constexpr size_t kThreadsShown = 6;
constexpr int kWhereColumns = 28;

void write_sites(const analysis::HeapSummary& heap, bool live, TextPage& page) {
  int name_columns = page.width() - (10 + 9 + 10 + 10 + 2 + 2 + kWhereColumns);
  page.line(page.ink(
      Ink::dim, fmt::format("{}{}{}{}  {}  where", right(live ? "live" : "allocated", 10),
                            right("± 95 %", 9), right("objects", 10),
                            right(beside_title(heap, live), 10), left("function", name_columns))));
  for (const analysis::HeapSite* site : sites_by(heap, live, kSitesShown)) {
    const analysis::HeapAmount& amount = live ? site->live : site->allocated;
    page.line(fmt::format(
        "{}{}{}{}  {}  {}", right(bytes_text(amount.bytes), 10),
        right(error_text(amount.bytes_error, heap), 9), right(count_text(amount.objects), 10),
        right(beside_text(*site, heap, live), 10),
        left(function_name(site->function, name_columns), name_columns),
        page.ink(Ink::dim,
                 fitted(where_text(site->file, site->line, site->module), kWhereColumns))));
  }
}

void write_stacks(const std::vector<const analysis::HeapSite*>& sites, TextPage& page) {
  for (size_t i = 0; i < std::min(kStacksShown, sites.size()); ++i) {
    page.line(fmt::format("  {}", page.ink(Ink::dim, "called by")));
    page.stack(sites[i]->frames, kStackLines);
  }
}

void write_leaks(const analysis::HeapSummary& heap, TextPage& page) {
  std::vector<const analysis::HeapSite*> leaks = leaking_sites(heap);
  page.heading("Suspected leaks",
               leaks.empty()
                   ? std::string("no call site grew all the time and kept its memory")
                   : fmt::format("grew all the time; memory younger than {} is ignored",
                                 format_duration(heap.young_ns)));
  for (const analysis::HeapSite* site : leaks) {
    page.paragraph("  ! ",
                   fmt::format("{} ({}): {} ± {} in {} objects still held, {} growth, {} of what "
                               "it allocated was freed",
                               site->function, where_text(site->file, site->line, site->module),
                               bytes_text(site->old.bytes), bytes_text(site->old.bytes_error),
                               count_text(site->old.objects), growth_text(*site) + "/s",
                               format_percent(site->freed_share)),
                   4);
    page.stack(site->frames, kStackLines);
  }
}

void write_threads(const analysis::Report& report, TextPage& page) {
  const analysis::HeapSummary& heap = report.heap;
  if (heap.threads.size() < 2) return;
  page.heading("Allocation by thread");
  for (size_t i = 0; i < std::min(kThreadsShown, heap.threads.size()); ++i) {
    const analysis::HeapThread& thread = heap.threads[i];
    page.line(fmt::format(
        "{}{}  {} {}",
        right(heap.timed ? rate_text(thread.allocated.bytes, heap)
                         : bytes_text(thread.allocated.bytes),
              12),
        right(format_percent(
                  heap.allocated.bytes > 0 ? thread.allocated.bytes / heap.allocated.bytes : 0),
              9),
        fitted(printable(thread.name), 24), thread.tid));
  }
}

}  // namespace

void write_heap(const analysis::Report& report, TextPage& page) {
  const analysis::HeapSummary& heap = report.heap;
  if (!heap.present) return;
  page.heading("Heap", heap_heading(heap));
  for (const std::string& line : heap_phrases(report)) page.paragraph("  ", line, 2);
  if (heap.allocated.samples == 0 && heap.live.samples == 0) return;
  std::vector<const analysis::HeapSite*> live = sites_by(heap, true, kSitesShown);
  if (!live.empty()) {
    page.heading("Live heap by call site",
                 heap.timed ? "what was allocated since the start and is still held"
                            : "what was held when the profile was taken");
    write_sites(heap, true, page);
    write_stacks(live, page);
  }
  std::vector<const analysis::HeapSite*> all = sites_by(heap, false, kSitesShown);
  if (!all.empty()) {
    page.heading("Allocations by call site", "whether freed or not");
    write_sites(heap, false, page);
    if (live.empty()) write_stacks(all, page);
  }
  if (heap.timed) write_leaks(heap, page);
  write_threads(report, page);
}

void write_heap_leaks(const analysis::Report& report, TextPage& page) {
  write_leaks(report.heap, page);
  for (const analysis::Finding& finding : report.findings) {
    if (finding.id != analysis::kHeapGrowth) continue;
    page.paragraph("  ! ", fmt::format("{}: {}", finding.title, finding.evidence.front().text), 4);
    page.stack(finding.evidence.front().frames, kStackLines);
  }
  const analysis::HeapSummary& heap = report.heap;
  if (heap.allocated.samples > 0)
    page.paragraph("  ",
                   fmt::format("{} samples in {}, one per {} on average",
                               count_text(static_cast<double>(heap.allocated.samples)),
                               format_duration(heap.window_ns), bytes_text(heap.mean_rate_bytes)),
                   2);
}

}  // namespace assay::report
