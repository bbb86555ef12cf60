#include "report/text/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/text/heap_words.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr int kLabelColumns = 10;

void labelled(TextPage& page, std::string_view label, std::string_view text) {
  if (text.empty()) return;
  page.line(left(label, kLabelColumns) + fitted(text, page.width() - kLabelColumns));
}

// The URL or program stays whole as long as it can; its options are shortened first.
std::string shortened_load(std::string_view name, int width) {
  constexpr int kReadable = 10;
  size_t space = std::min(name.find(' '), name.size());
  std::string first = elide_middle(name.substr(0, space), width);
  int rest = width - display_width(first) - 1;
  if (space == name.size() || rest < kReadable) return elide_middle(name, width);
  return first + " " + elide_middle(name.substr(space + 1), rest);
}

// In one line where it fits; else the figures have their own lines, and none of them is cut.
void write_load(const analysis::Report& report, TextPage& page) {
  const std::string& figures = report.workload.figures;
  std::string indent(kLabelColumns, ' '), name = printable(load_name(report));
  int whole = kLabelColumns + display_width(name) + 2 + display_width(printable(figures));
  if (whole <= page.width() && !name.empty() && !figures.empty()) {
    labelled(page, "load", name + "; " + figures);
    return;
  }
  labelled(page, "load", shortened_load(name, page.width() - kLabelColumns));
  if (figures.empty()) return;
  page.paragraph(name.empty() ? left("load", kLabelColumns) : indent, figures, kLabelColumns);
}

void write_header(const analysis::Report& report, TextPage& page) {
  const model::RunInfo& info = report.info;
  std::string target = info.target.empty() ? "a run" : info.target;
  page.line(page.ink(Ink::bold, fitted("Assay: " + target, page.width())));
  std::string window = fmt::format("{}{}", window_text(report), since(info.utc_begin_ns));
  labelled(page, "window", window);
  labelled(page, "host", host_text(report));
  for (const analysis::AcceleratorUse& device : report.accelerators)
    page.paragraph(left("device", kLabelColumns), printable(analysis::figures_of(device)),
                   kLabelColumns);
  write_load(report, page);
  labelled(page, "captured", capture_text(report));
  labelled(page, "shown", report.selection);
}

// Only what says something by itself: ratios of the hardware's counters, and rates that are high on
// some servers.
void write_counters(const analysis::Report& report, TextPage& page) {
  const analysis::Vitals& v = report.vitals;
  std::vector<std::string> phrases;
  auto add = [&](const std::optional<double>& value, const char* text) {
    if (!value) return;
    std::string number =
        *value < 1000 ? fmt::format("{:.3g}", *value) : format_count(static_cast<uint64_t>(*value));
    phrases.push_back(number + " " + text);
  };
  add(v.ipc, "instructions per cycle");
  add(v.branch_mpki, "mispredicted branches per 1,000 instructions");
  add(v.llc_mpki, "last-level misses per 1,000 instructions");
  add(v.migrations_per_s, "moves to another CPU/s");
  if (phrases.empty()) return;
  add(v.minor_faults_per_s, "page faults/s");
  page.heading("Counters", "all of them: assay view, tab Counters");
  page.phrases("  ", phrases, 2);
}

void write_others(const analysis::Report& report, TextPage& page) {
  if (report.others.largest.empty()) return;
  page.heading("Who else", "the largest other users of CPU and disk on this host");
  page.line(page.ink(Ink::dim, fmt::format("{}{}  {}name", right("CPUs", 8), right("disk/s", 10),
                                           left("relation", 25))));
  for (const model::OtherUser& user : report.others.largest) {
    std::string disk =
        user.disk_bytes_per_s ? format_bytes(static_cast<uint64_t>(*user.disk_bytes_per_s)) : "?";
    page.line(fmt::format("{}{}  {}{}", right(fmt::format("{:.2f}", user.cpus), 8), right(disk, 10),
                          left(model::relation_name(user.relation), 25),
                          fitted(other_user_text(user), page.width() - 45)));
  }
}

void write_quality(const analysis::Report& report, TextPage& page) {
  page.heading("Quality", "how much to trust these numbers");
  page.phrases(
      left("quality", kLabelColumns),
      is_heap_only(report) ? heap_quality_phrases(report) : quality_phrases(report.quality),
      kLabelColumns);
  std::string indent(kLabelColumns, ' ');
  for (const model::QualityNote& note : all_limits(report.quality)) {
    page.paragraph(indent + page.ink(Ink::warning, "! "), note.topic + ": " + note.text,
                   kLabelColumns + 2);
    if (!note.remedy.empty()) {
      page.paragraph(indent + "  try: ", note.remedy, kLabelColumns + 7);
    }
  }
}

void write_files(const analysis::Report& report, TextPage& page) {
  if (report.run_path.empty()) return;
  page.heading("Files");
  labelled(page, "  run", report.run_path);
  labelled(page, "  as JSON", fmt::format("assay report {} --format json", report.run_path));
}

}  // namespace

std::string render_text(const analysis::Report& report, const Style& style) {
  TextPage page(style);
  write_header(report, page);
  if (is_heap_only(report)) {
    write_findings(report, page);
    write_heap(report, page);
    write_quality(report, page);
    write_files(report, page);
    return page.take();
  }
  write_verdict(report, page);
  if (!is_of_counts(report.run_kind)) {
    write_thread_time(report, page);
    write_others(report, page);
    write_resources(report, page);
    write_findings(report, page);
  }
  write_locks(report, page);
  write_categories(report, page);
  write_functions(report, page);
  write_paths(report, page);
  if (!is_of_counts(report.run_kind) || !report.off_cpu.paths.empty()) write_waits(report, page);
  write_heap(report, page);
  write_counters(report, page);
  write_quality(report, page);
  write_next_step(report, page);
  write_files(report, page);
  return page.take();
}

std::string render_leaks(const analysis::Report& report, const Style& style) {
  TextPage page(style);
  write_heap_leaks(report, page);
  return page.take();
}

}  // namespace assay::report
