#include "report/markdown.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr size_t kFunctionsShown = 25;
constexpr size_t kPathsShown = 10;
constexpr size_t kWaitsShown = 15;
constexpr size_t kRowsShown = 60;
constexpr size_t kFramesShown = 40;
constexpr int kNameColumns = 120;

// Every character that Markdown, HTML or an issue tracker could read as its own becomes an entity.
std::string escaped(std::string_view text, int columns = kNameColumns) {
  std::string safe;
  for (char c : fitted(text, columns)) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = byte >= 0x80 || std::isalnum(byte) ||
                 std::string_view(" .,:;/+-()%=?'").find(c) != std::string_view::npos;
    safe += plain ? std::string(1, c) : fmt::format("&#{};", byte);
  }
  return safe;
}

std::string code(std::string_view text) {
  return "<code>" + escaped(text) + "</code>";
}

std::string folded(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", summary, body);
}

std::string stack(const std::vector<analysis::FrameText>& frames) {
  if (frames.empty()) return "<pre>[no stack]</pre>\n";
  std::string text = "<pre>";
  for (size_t i = 0; i < frames.size(); ++i) {
    size_t outermost = 3;
    if (frames.size() > kFramesShown && i == kFramesShown - outermost) {
      text += fmt::format("… {} frames …\n", frames.size() - kFramesShown);
      i = frames.size() - outermost;
    }
    const analysis::FrameText& f = frames[i];
    bool marker = f.kind == analysis::CodeKind::marker;
    text += escaped(function_name(f.function, kNameColumns)) + (f.inlined ? " (inlined)" : "");
    if (!marker) text += "  " + escaped(where_text(f.file, f.line, f.module));
    text += "\n";
  }
  return text + "</pre>\n";
}

std::string split_row(std::string_view name, size_t threads, const analysis::TimeSplit& time) {
  std::string kinds;
  for (const std::string& phrase : blocked_phrases(time)) {
    kinds += (kinds.empty() ? "" : ", ") + phrase;
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, threads,
                     percent_of(time.user_ns, time.wall_ns),
                     percent_of(time.kernel_ns, time.wall_ns),
                     percent_of(time.runqueue_ns, time.wall_ns),
                     percent_of(time.blocked_total_ns(), time.wall_ns), kinds);
}

std::string header(const analysis::Report& report) {
  const model::RunInfo& info = report.info;
  std::string text =
      fmt::format("## Assay: {}\n\n", code(info.target.empty() ? "a run" : info.target));
  text += fmt::format("- window: {} from {}\n", format_duration(report.window_ns),
                      utc_time(info.utc_begin_ns));
  std::string host = host_text(report);
  if (!host.empty()) text += "- host: " + escaped(host) + "\n";
  text += "- captured: " + escaped(capture_text(report)) + "\n";
  if (!report.selection.empty()) text += "- shown: " + escaped(report.selection) + "\n";
  text += "- quality: ";
  bool first = true;
  for (const std::string& phrase : quality_phrases(report.quality)) {
    text += (first ? "" : " · ") + phrase;
    first = false;
  }
  text += "\n";
  for (const model::QualityNote& note : all_limits(report.quality)) {
    text += fmt::format("  - **{}**: {}", escaped(note.topic), escaped(note.text, 1000));
    if (!note.remedy.empty()) text += "; try: " + code(note.remedy);
    text += "\n";
  }
  return text + "\n";
}

std::string thread_time(const analysis::Report& report) {
  std::string head =
      "| percent of wall time | threads | user | kernel | run-queue | blocked | on |\n"
      "|---|--:|--:|--:|--:|--:|---|\n";
  std::string text = "### Thread time\n\n" + head;
  text += split_row("all", report.threads.size(), report.thread_time);
  size_t rows = 0;
  for (const analysis::ProcessTime& process : report.processes) {
    if (++rows > kRowsShown) break;
    text += split_row("**" + escaped(process_text(process.process)) + "**", process.threads,
                      process.time);
    for (const analysis::PoolTime& pool : process.pools) {
      if (++rows > kRowsShown) break;
      text += split_row(code(pool.pool), pool.threads, pool.time);
    }
  }
  text += rows > kRowsShown ? "\nOnly the busiest are shown.\n\n" : "\n";
  std::string threads = head;
  for (size_t i = 0; i < std::min(kRowsShown, report.threads.size()); ++i) {
    const analysis::ThreadTime& row = report.threads[i];
    threads += split_row(fmt::format("{} {}", row.tid, code(row.name)), 1, row.time);
  }
  return text + folded(fmt::format("Threads ({})", grouped(report.threads.size())), threads);
}

std::string functions(const analysis::Report& report) {
  const analysis::OnCpuProfile& cpu = report.on_cpu;
  std::string text = "### Hottest functions, on-CPU\n\n";
  if (cpu.samples == 0) return text + "No samples.\n\n";
  text += fmt::format("{} in {} samples. Totals overlap; self times add up.\n\n",
                      format_duration(cpu.time_ns), grouped(cpu.samples));
  text += "| self | 95 % interval | total | function | where |\n|--:|--:|--:|---|---|\n";
  for (size_t i = 0; i < std::min(kFunctionsShown, cpu.functions.size()); ++i) {
    const analysis::HotFunction& f = cpu.functions[i];
    if (f.self_samples == 0) break;
    text += fmt::format("| {} | {} | {} | {} | {} |\n", format_percent(f.self.share),
                        interval_text(f.self), format_percent(f.total.share),
                        code(function_name(f.name, kNameColumns)),
                        escaped(where_text(f.file, f.line, f.module)));
  }
  std::string paths;
  for (size_t i = 0; i < std::min(kPathsShown, cpu.paths.size()); ++i) {
    const analysis::HotPath& path = cpu.paths[i];
    paths += fmt::format("{} ({}), {} samples\n\n{}\n", format_percent(path.share.share),
                         interval_text(path.share), grouped(path.samples), stack(path.frames));
  }
  return text + "\n" + folded("Hottest paths, on-CPU", paths);
}

std::string waits(const analysis::Report& report) {
  const analysis::OffCpuProfile& off = report.off_cpu;
  std::string text = "### Longest waits, off-CPU\n\n";
  if (off.paths.empty()) return text + "No thread blocked.\n";
  text += fmt::format("{} in {} waits; waiting for a CPU is not among them.\n\n",
                      format_duration(off.time_ns), grouped(off.waits));
  text += "| | total | count | mean | p99 | max | kind | by |\n|--:|--:|--:|--:|--:|--:|---|---|\n";
  std::string stacks;
  for (size_t i = 0; i < std::min(kWaitsShown, off.paths.size()); ++i) {
    const analysis::WaitSummary& w = off.paths[i];
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {}{} | {} | {} |\n", i + 1,
                    format_duration(w.total_ns), format_count(w.count), format_duration(w.mean_ns),
                    format_duration(w.p99_ns), w.cut > 0 ? "≥ " : "", format_duration(w.max_ns),
                    analysis::block_kind_name(w.kind), escaped(pools_text(w)));
    stacks += fmt::format("{}. {}, {}\n\n{}\n", i + 1, format_duration(w.total_ns),
                          analysis::block_kind_name(w.kind), stack(w.frames));
  }
  return text + "\n" + folded("Their stacks", stacks);
}

}  // namespace

std::string render_markdown(const analysis::Report& report) {
  return header(report) + thread_time(report) + functions(report) + waits(report);
}

}  // namespace assay::report
