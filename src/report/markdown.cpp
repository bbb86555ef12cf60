#include "report/markdown.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/units.h"
#include "report/printable.h"
#include "report/text/heap_words.h"
#include "report/text/stack_lines.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kFunctionsShown = 25;
constexpr size_t kPathsShown = 10;
constexpr size_t kWaitsShown = 15;
constexpr size_t kRowsShown = 60;
constexpr size_t kFindingsShown = 10;
constexpr size_t kResourcesShown = 8;
constexpr size_t kLocksShown = 10;
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
  std::vector<StackLine> lines = stack_lines(frames);
  constexpr size_t kOutermost = 3;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > kFramesShown && i == kFramesShown - kOutermost) {
      size_t hidden = 0;
      for (; i < lines.size() - kOutermost; ++i) hidden += lines[i].frames;
      text += fmt::format("… {} frames …\n", grouped(hidden));
    }
    if (lines[i].frame == nullptr) {
      text += cycle_text(lines[i]) + "\n";
      continue;
    }
    const analysis::FrameText& f = *lines[i].frame;
    bool marker = f.kind == analysis::CodeKind::marker;
    text += escaped(function_name(f.function, kNameColumns)) + (f.inlined ? " (inlined)" : "") +
            times_text(lines[i]);
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
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} |\n", name, threads,
      percent_of(time.user_ns, time.wall_ns), percent_of(time.kernel_ns, time.wall_ns),
      percent_of(time.runqueue_ns, time.wall_ns), percent_of(time.blocked_total_ns(), time.wall_ns),
      percent_of(time.idle_ns, time.wall_ns), kinds);
}

// What drove the server may be long and is shortened; its figures are not.
std::string load_text(const analysis::Report& report) {
  constexpr int kLongestFigures = 600;  // a command's own last words are among them
  std::string name = escaped(load_name(report), 200);
  std::string figures = escaped(report.workload.figures, kLongestFigures);
  return name + (name.empty() || figures.empty() ? "" : "; ") + figures;
}

std::string header(const analysis::Report& report) {
  const model::RunInfo& info = report.info;
  std::string text =
      fmt::format("## Assay: {}\n\n", code(info.target.empty() ? "a run" : info.target));
  text += fmt::format("- window: {}{}\n", window_text(report), since(info.utc_begin_ns));
  std::string host = host_text(report);
  if (!host.empty()) text += "- host: " + escaped(host) + "\n";
  for (const analysis::AcceleratorUse& device : report.accelerators)
    text += "- device: " + escaped(analysis::figures_of(device)) + "\n";
  text += "- captured: " + escaped(capture_text(report)) + "\n";
  if (!report.selection.empty()) text += "- shown: " + escaped(report.selection) + "\n";
  if (report.workload.present) text += "- load: " + load_text(report) + "\n";
  return text + "\n";
}

std::string quality(const analysis::Report& report) {
  std::string text = "### Quality\n\n- ";
  bool first = true;
  for (const std::string& phrase :
       is_heap_only(report) ? heap_quality_phrases(report) : quality_phrases(report.quality)) {
    text += (first ? "" : " · ") + phrase;
    first = false;
  }
  text += "\n";
  for (const model::QualityNote& note : all_limits(report.quality)) {
    text += fmt::format("- **{}**: {}", escaped(note.topic), escaped(note.text, 1000));
    if (!note.remedy.empty()) text += "; try: " + code(note.remedy);
    text += "\n";
  }
  return text + "\n";
}

std::string verdict(const analysis::Report& report) {
  const analysis::Verdict& v = report.verdict;
  std::string text = fmt::format("### Verdict: {}\n\n**{}**", analysis::verdict_kind_id(v.kind),
                                 escaped(v.sentence, 1000));
  if (v.kind != analysis::VerdictKind::withheld)
    text += fmt::format(" ({} confidence)", confidence_text(v.confidence));
  text += "\n\n";
  for (const std::string& number : v.numbers) text += "- " + escaped(number, 300) + "\n";
  for (const std::string& remedy : v.remedies) text += "- try: " + escaped(remedy, 300) + "\n";
  for (const analysis::Claim& claim : v.secondary) {
    text +=
        fmt::format("- {}: {}\n", v.kind == analysis::VerdictKind::withheld ? "would be" : "also",
                    escaped(claim.sentence, 600));
  }
  for (const analysis::SuspectAnswer& s : report.suspects) {
    text +=
        fmt::format("- suspect {}: **{}**. {}\n", code(s.pattern), s.answer, escaped(s.text, 600));
  }
  return text + "\n";
}

std::string finding(size_t number, const analysis::Finding& f) {
  std::string share =
      f.of == analysis::ShareOf::nothing ? std::string(analysis::cause_id(f.cause)) : share_text(f);
  std::string text = fmt::format("{}. **{}**: {}\n", number, escaped(f.title, 200), share);
  if (!f.where.symbol.empty()) {
    text += fmt::format("   - where: {} {}\n", code(function_name(f.where.symbol, kNameColumns)),
                        escaped(where_text(f.where.file, f.where.line, "")));
  }
  text += fmt::format("   - why: {}\n   - try: {}\n", escaped(f.because, 600),
                      escaped(f.recommendation, 600));
  if (!f.gain.text.empty()) text += fmt::format("   - gain: {}\n", escaped(f.gain.text, 300));
  return text;
}

std::string findings(const analysis::Report& report) {
  std::string text = "### Findings\n\n";
  if (report.findings.empty()) text += "None: no detector's threshold was reached.\n\n";
  std::string evidence;
  for (size_t i = 0; i < report.findings.size(); ++i) {
    const analysis::Finding& f = report.findings[i];
    if (i < kFindingsShown) text += finding(i + 1, f);
    if (i >= kFindingsShown || f.evidence.empty()) continue;
    evidence += fmt::format("{}. {}\n\n", i + 1, escaped(f.evidence[0].text, 300));
    if (!f.evidence[0].frames.empty()) evidence += stack(f.evidence[0].frames) + "\n";
  }
  text += "\n";
  if (!evidence.empty()) text += folded("Evidence", evidence);
  if (report.not_bottlenecks.empty()) return text;
  text += "Not a bottleneck:\n\n";
  for (const analysis::NotBottleneck& n : report.not_bottlenecks) {
    text += fmt::format("- {}: {}\n", escaped(n.what), escaped(n.text, 200));
  }
  return text + "\n";
}

std::string others(const analysis::Report& report) {
  if (report.others.largest.empty()) return "";
  std::string text =
      "### Who else\n\nThe largest other users of CPU and disk on this host.\n\n"
      "| CPUs | disk/s | relation | name |\n|--:|--:|---|---|\n";
  for (const model::OtherUser& user : report.others.largest) {
    std::string disk =
        user.disk_bytes_per_s ? format_bytes(static_cast<uint64_t>(*user.disk_bytes_per_s)) : "?";
    text += fmt::format("| {:.2f} | {} | {} | {} |\n", user.cpus, disk,
                        model::relation_name(user.relation), escaped(other_user_text(user)));
  }
  return text + "\n";
}

std::string resources(const analysis::Report& report) {
  const analysis::Demands& d = report.demands;
  if (!d.known()) return "";
  std::string text = fmt::format(
      "### Resources\n\n{}.\n\n| busy | per {} | servers | waiting | resource |\n"
      "|--:|--:|--:|--:|---|\n",
      resources_remark(d), analysis::work_unit_id(d.unit));
  for (size_t i = 0; i < std::min(kResourcesShown, d.resources.size()); ++i) {
    ResourceWords words = resource_words(d.resources[i]);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", words.busy, words.demand, words.servers,
                        words.waiting, escaped(words.name));
  }
  return text + "\n";
}

std::string locks(const analysis::Report& report) {
  if (report.locks.empty()) return "";
  std::string text =
      "### Locks\n\n| total | waits | mean | p99 | max | contended | waiters avg/max | shape | "
      "lock |\n"
      "|--:|--:|--:|--:|--:|--:|--:|---|---|\n";
  for (size_t i = 0; i < std::min(kLocksShown, report.locks.size()); ++i) {
    const analysis::LockSummary& l = report.locks[i];
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f}/{} | {} | {} |\n",
                        format_duration(l.total_ns), format_count(l.waits),
                        format_duration(l.mean_ns), format_duration(l.p99_ns),
                        format_duration(l.max_ns), format_percent(l.waited_share), l.mean_waiters,
                        l.most_waiters, analysis::lock_shape_id(l.shape), escaped(l.name));
  }
  return text + "\n";
}

std::string categories(const analysis::Report& report) {
  if (report.categories.empty()) return "";
  std::string head = "| CPU | 95 % interval | within | |\n|--:|--:|--:|---|\n";
  std::string text =
      "### CPU by subsystem\n\nEach sample once; “within” includes callees; rows overlap.\n\n" +
      head;
  std::string views, last;
  for (const analysis::CategoryShare& row : report.categories) {
    bool main = row.category.breakdown == analysis::kSubsystem;
    if (!main && row.category.breakdown != last) {
      last = row.category.breakdown;
      views += fmt::format("{}**{}**\n\n{}", views.empty() ? "" : "\n", escaped(last), head);
    }
    (main ? text : views) += fmt::format(
        "| {} | {} | {} | {} |\n", format_percent(row.share.share), interval_text(row.share),
        format_percent(row.inclusive_share), escaped(row.category.name));
  }
  text += "\n";
  return views.empty() ? text : text + folded("Other breakdowns", views);
}

std::string next_step(const analysis::Report& report) {
  if (report.verdict.next_step.empty()) return "";
  return fmt::format("\n### Next\n\n{}\n\n{}\n", escaped(report.verdict.next_step, 300),
                     code(report.verdict.next_command));
}

std::string thread_time(const analysis::Report& report) {
  std::string head =
      "| percent of wall time | threads | user | kernel | run-queue | blocked | idle | blocked on "
      "|\n"
      "|---|--:|--:|--:|--:|--:|--:|---|\n";
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
  std::string per_request;
  for (const std::string& phrase : per_request_phrases(report)) {
    per_request += (per_request.empty() ? "Per request: " : " · ") + phrase;
  }
  if (!per_request.empty()) text += per_request + "\n\n";
  std::string threads = head;
  for (size_t i = 0; i < std::min(kRowsShown, report.threads.size()); ++i) {
    const analysis::ThreadTime& row = report.threads[i];
    threads += split_row(fmt::format("{} {}", row.tid, code(row.name)), 1, row.time);
  }
  return text + folded(fmt::format("Threads ({})", grouped(report.threads.size())), threads);
}

std::string functions(const analysis::Report& report) {
  const analysis::OnCpuProfile& cpu = report.on_cpu;
  bool timed = !is_of_counts(report.run_kind);
  std::string text = timed ? "### Hottest functions, on-CPU\n\n" : "### Functions\n\n";
  if (cpu.samples == 0) return text + "No samples.\n\n";
  text += fmt::format("{} in {} samples. Totals overlap; self {} add up.\n\n",
                      escaped(amount_text(report, cpu.time_ns)), grouped(cpu.samples),
                      timed ? "times" : "counts");
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
  return text + "\n" + folded(timed ? "Hottest paths, on-CPU" : "Paths", paths);
}

std::string waits(const analysis::Report& report) {
  const analysis::OffCpuProfile& off = report.off_cpu;
  std::string text = "### Longest waits, off-CPU\n\n";
  if (off.paths.empty()) return text + "No thread blocked.\n";
  text += fmt::format("{} in {} waits; run-queue time not included.\n\n",
                      format_duration(off.time_ns), grouped(off.waits));
  text += "| | total | count | mean | p99 | max | kind | by |\n|--:|--:|--:|--:|--:|--:|---|---|\n";
  std::string stacks;
  for (size_t i = 0; i < std::min(kWaitsShown, off.paths.size()); ++i) {
    const analysis::WaitSummary& w = off.paths[i];
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {}{} | {} | {} |\n", i + 1, format_duration(w.total_ns),
        format_count(w.count), format_duration(w.mean_ns), format_duration(w.p99_ns),
        w.cut > 0 ? "≥ " : "", format_duration(w.max_ns), kind_text(w), escaped(pools_text(w)));
    stacks += fmt::format("{}. {}, {}\n\n{}\n", i + 1, format_duration(w.total_ns), kind_text(w),
                          stack(w.frames));
  }
  return text + "\n" + folded("Their stacks", stacks);
}

std::string heap_table(const analysis::HeapSummary& heap, bool live) {
  std::string text =
      fmt::format("| {} | ± 95 % | objects | {} | function | where |\n|--:|--:|--:|--:|---|---|\n",
                  live ? "live" : "allocated", beside_title(heap, live));
  for (const analysis::HeapSite* site : sites_by(heap, live, kFunctionsShown)) {
    const analysis::HeapAmount& amount = live ? site->live : site->allocated;
    text += fmt::format(
        "| {} | {} | {} | {} | {}{} | {} |\n", bytes_text(amount.bytes),
        error_text(amount.bytes_error, heap), count_text(amount.objects),
        beside_text(*site, heap, live), code(function_name(site->function, kNameColumns)),
        site->leaks ? " **leaks**" : "", escaped(where_text(site->file, site->line, site->module)));
  }
  return text + "\n";
}

std::string heap(const analysis::Report& report) {
  if (!report.heap.present) return "";
  std::string text = "### Heap\n\n";
  for (const std::string& phrase : heap_phrases(report)) text += "- " + phrase + "\n";
  text += "\n";
  if (report.heap.live_known)
    text += "#### Live heap by call site\n\n" + heap_table(report.heap, true);
  if (report.heap.freed_known)
    text += "#### Allocations by call site\n\n" + heap_table(report.heap, false);
  std::string stacks;
  for (const analysis::HeapSite* site : sites_by(report.heap, true, kPathsShown)) {
    stacks += fmt::format("{} live, {}\n\n{}\n", bytes_text(site->live.bytes), code(site->function),
                          stack(site->frames));
  }
  return text + (stacks.empty() ? "" : folded("Their stacks", stacks));
}

}  // namespace

std::string render_markdown(const analysis::Report& report) {
  if (is_heap_only(report))
    return header(report) + findings(report) + heap(report) + quality(report);
  if (is_of_counts(report.run_kind))
    return header(report) + verdict(report) + functions(report) + quality(report) +
           next_step(report);
  return header(report) + verdict(report) + thread_time(report) + others(report) + resources(report) +
         findings(report) + locks(report) + categories(report) + functions(report) + waits(report) +
         "\n" + heap(report) + quality(report) + next_step(report);
}

}  // namespace assay::report
