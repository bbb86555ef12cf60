// The thread-time section: one bar and one row per process and pool.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "report/printable.h"
#include "report/text/text_page.h"
#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kProcessesShown = 8;
constexpr size_t kPoolsShown = 8;
constexpr int kThreadsColumns = 7;
constexpr int kPercentColumns = 7;
constexpr int kBlockedColumns = 8;
constexpr int kIdleColumns = 6;
constexpr int kKindColumns = 17;  // the longest kind with its share

// Columns by the page's width: the bar grows, names shrink on a narrow page.
struct Layout {
  int name = 22;
  int bar = 8;
  int kinds = kKindColumns;

  explicit Layout(int width) {
    // A narrow page has no room for the bar.
    if (width < 96) name = 16, bar = 0;
    int fixed =
        name + kThreadsColumns + 2 + 3 * kPercentColumns + kBlockedColumns + kIdleColumns + 2;
    int free = width - fixed - bar - kinds;
    if (bar > 0) bar += std::clamp(free / 2, 0, 24);
    kinds = width - fixed - bar;
  }
  int before_kinds() const {
    return name + kThreadsColumns + 2 + bar + 3 * kPercentColumns + kBlockedColumns + kIdleColumns +
           2;
  }
};

struct Segment {
  std::string_view mark;
  Ink ink;
  int64_t ns;
};

std::array<Segment, 5> segments(const analysis::TimeSplit& time) {
  return {{{"█", Ink::user, time.user_ns},
           {"▓", Ink::kernel, time.kernel_ns},
           {"▒", Ink::runqueue, time.runqueue_ns},
           {"░", Ink::blocked, time.blocked_total_ns()},
           {"·", Ink::idle, time.idle_ns}}};
}

// Columns by largest remainder, so that a bar is always full.
std::string bar(const TextPage& page, const analysis::TimeSplit& time, int width) {
  if (time.wall_ns <= 0) return std::string(static_cast<size_t>(width), ' ');
  auto parts = segments(time);
  std::array<int, 5> columns{};
  std::array<size_t, 5> order{0, 1, 2, 3, 4};
  std::array<double, 5> rest{};
  int used = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    double exact = width * static_cast<double>(parts[i].ns) / static_cast<double>(time.wall_ns);
    columns[i] = static_cast<int>(exact);
    rest[i] = exact - columns[i];
    used += columns[i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  for (size_t i = 0; used < width; ++used, i = (i + 1) % order.size()) ++columns[order[i]];
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string run;
    for (int c = 0; c < columns[i]; ++c) run += parts[i].mark;
    text += page.ink(parts[i].ink, run);
  }
  return text;
}

// Kinds joined by commas, as many to a line as fit.
std::vector<std::string> kind_lines(const analysis::TimeSplit& time, int width) {
  std::vector<std::string> lines{""};
  for (const std::string& phrase : blocked_phrases(time)) {
    std::string longer = lines.back() + (lines.back().empty() ? "" : ", ") + phrase;
    if (!lines.back().empty() && display_width(longer) > width) {
      lines.push_back(phrase);
    } else {
      lines.back() = longer;
    }
  }
  return lines;
}

void row(TextPage& page, std::string_view name, size_t threads, const analysis::TimeSplit& time) {
  Layout layout(page.width());
  std::vector<std::string> kinds = kind_lines(time, layout.kinds);
  auto percent = [&](int64_t ns, int columns) {
    return right(percent_of(ns, time.wall_ns), columns);
  };
  page.line(fmt::format(
      "{}{}  {}{}{}{}{}{}  {}", left(name, layout.name), right(grouped(threads), kThreadsColumns),
      bar(page, time, layout.bar), percent(time.user_ns, kPercentColumns),
      percent(time.kernel_ns, kPercentColumns), percent(time.runqueue_ns, kPercentColumns),
      percent(time.blocked_total_ns(), kBlockedColumns), percent(time.idle_ns, kIdleColumns),
      page.ink(Ink::dim, kinds[0])));
  for (size_t i = 1; i < kinds.size(); ++i) {
    page.line(left("", layout.before_kinds()) + page.ink(Ink::dim, kinds[i]));
  }
}

void table_head(TextPage& page) {
  Layout layout(page.width());
  page.line(page.ink(Ink::dim, left("", layout.name) + right("threads", kThreadsColumns) +
                                   left("", 2 + layout.bar) + right("user", kPercentColumns) +
                                   right("kernel", kPercentColumns) +
                                   right("run-q", kPercentColumns) +
                                   right("blocked", kBlockedColumns) + right("idle", kIdleColumns) +
                                   "  blocked on"));
}

// The rows that are not shown, as one.
template <class Rows>
void remainder(TextPage& page, const Rows& rows, size_t shown, std::string_view indent,
               std::string_view what) {
  if (rows.size() <= shown) return;
  analysis::TimeSplit sum;
  size_t threads = 0;
  for (size_t i = shown; i < rows.size(); ++i) {
    sum.add(rows[i].time);
    threads += rows[i].threads;
  }
  row(page, fmt::format("{}… {} more {}", indent, rows.size() - shown, what), threads, sum);
}

}  // namespace

void write_thread_time(const analysis::Report& report, TextPage& page) {
  if (report.threads.empty()) {
    page.heading("Thread time", "the run has no threads");
    return;
  }
  std::string remark = "percent of wall time; ";
  if (report.window_ns > 0) {
    remark += fmt::format("{:.2f}", static_cast<double>(report.thread_time.running_ns()) /
                                        static_cast<double>(report.window_ns));
    if (report.cpus > 0) remark += fmt::format(" of {}", report.cpus);
    remark += " CPUs; ";
  }
  page.heading("Thread time", remark + "█ user ▓ kernel ▒ run-q ░ blocked · idle");
  table_head(page);
  if (report.processes.size() != 1) {
    row(page, "all", report.threads.size(), report.thread_time);
  }
  for (size_t i = 0; i < std::min(kProcessesShown, report.processes.size()); ++i) {
    const analysis::ProcessTime& process = report.processes[i];
    row(page, process_text(process.process), process.threads, process.time);
    if (process.threads == 1) continue;  // its only pool says the same again
    for (size_t p = 0; p < std::min(kPoolsShown, process.pools.size()); ++p) {
      row(page, "  " + process.pools[p].pool, process.pools[p].threads, process.pools[p].time);
    }
    remainder(page, process.pools, kPoolsShown, "  ", "pools");
  }
  remainder(page, report.processes, kProcessesShown, "", "processes");
  if (auto at_once = at_once_phrases(report); !at_once.empty()) {
    page.phrases("at once: ", at_once, 9);
  }
  auto per_request = per_request_phrases(report);
  if (!per_request.empty()) page.phrases("per request: ", per_request, 13);
}

}  // namespace assay::report
