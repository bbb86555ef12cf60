#include "report/text/counters_text.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/profile/counter_ratios.h"
#include "analysis/profile/top_down.h"
#include "report/printable.h"
#include "report/text/text_page.h"

namespace assay::report {
namespace {

constexpr std::array<std::string_view, model::kCounterCount> kNames{"task-clock",
                                                                    "context-switches",
                                                                    "cpu-migrations",
                                                                    "minor-faults",
                                                                    "major-faults",
                                                                    "cycles",
                                                                    "instructions",
                                                                    "branches",
                                                                    "branch-misses",
                                                                    "stalled-cycles-frontend",
                                                                    "stalled-cycles-backend",
                                                                    "L1-dcache-loads",
                                                                    "L1-dcache-load-misses",
                                                                    "LLC-loads",
                                                                    "LLC-load-misses",
                                                                    "dTLB-loads",
                                                                    "dTLB-load-misses"};

constexpr size_t kMostSyscalls = 15;

std::string amount(double value) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (auto [size, unit] : kUnits) {
    if (value >= 10 * size) return fmt::format("{:.1f}{}", value / size, unit);
  }
  return fmt::format("{:.0f}", value);
}

}  // namespace

std::string_view counter_name(model::CounterId id) {
  return kNames[static_cast<size_t>(id)];
}

std::string render_counters_text(const CountersShown& shown, const Style& style) {
  TextPage page(style);
  for (size_t i = 0; i < shown.counts.size(); ++i) {
    const model::Count& count = shown.counts[i];
    if (!count.counted) continue;
    bool is_clock = static_cast<model::CounterId>(i) == model::CounterId::cpu_clock;
    std::string rate = is_clock ? fmt::format("{:.2f} CPUs", count.value / 1e9 / shown.seconds)
                                : amount(count.value / shown.seconds) + "/s";
    std::string turns =
        count.counted_share < 0.995
            ? fmt::format("counted {:.0f} % of the time, scaled", count.counted_share * 100)
            : "";
    std::string request;
    if (shown.requests > 0) {
      double each = count.value / static_cast<double>(shown.requests);
      request = is_clock ? fmt::format("{:.1f} µs/request", each / 1e3)
                         : fmt::format("{:.4g}/request", each);
    }
    page.line(fmt::format(
        "  {} {} {} {}  {}", left(kNames[i], 26),
        right(is_clock ? fmt::format("{:.1f} ms", count.value / 1e6) : amount(count.value), 14),
        right(rate, 14), right(request, shown.requests > 0 ? 20 : 0), page.ink(Ink::dim, turns)));
  }
  for (const analysis::CounterRatio& ratio : analysis::counter_ratios(shown.counts)) {
    page.line(fmt::format("  {} {}", left(ratio.name, 40),
                          ratio.is_share ? fmt::format("{:.2f} %", ratio.value * 100)
                                         : fmt::format("{:.2f}", ratio.value)));
  }
  return page.take();
}

std::string render_besides(const CountersShown& shown, const Style& style) {
  TextPage page(style);
  if (shown.besides == nullptr) return page.take();
  const CountedBesides& besides = *shown.besides;
  auto shares = analysis::top_down(besides.top_down);
  if (!shares.empty()) {
    std::string turns =
        besides.top_down.counted_share < 0.995
            ? fmt::format("counted {:.0f} % of the time", besides.top_down.counted_share * 100)
            : "";
    page.heading("Top-down", turns);
    for (const analysis::TopDownShare& share : shares) {
      std::string indent(static_cast<size_t>(2 * share.level), ' ');
      page.line(fmt::format("{} {:5.1f} %", left(indent + std::string(share.name), 40),
                            share.share * 100));
    }
  } else if (!besides.top_down.problem.empty()) {
    page.paragraph("  ", "no top-down: " + besides.top_down.problem, 2);
  }
  if (besides.by_syscall.empty() && besides.syscalls == 0) {
    if (!besides.syscall_source.empty() && besides.syscall_source != "BPF")
      page.paragraph("  ", "no system calls: " + besides.syscall_source, 2);
    return page.take();
  }
  page.heading("System calls",
               fmt::format("{}/s; counted by {}",
                           amount(static_cast<double>(besides.syscalls) / shown.seconds),
                           besides.syscall_source));
  for (size_t i = 0; i < besides.by_syscall.size() && i < kMostSyscalls; ++i) {
    const SyscallShown& call = besides.by_syscall[i];
    auto calls = static_cast<double>(call.calls);
    page.line(fmt::format(
        "  {} {} {}{}", left(call.name, 26), right(amount(calls), 14),
        right(amount(calls / shown.seconds) + "/s", 14),
        shown.requests > 0
            ? fmt::format(" {:>12.3g}/request", calls / static_cast<double>(shown.requests))
            : ""));
  }
  return page.take();
}

std::string render_uncounted(const model::Counts& counts, const Style& style) {
  std::map<std::string, std::string> by_reason;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].counted || counts[i].problem.empty()) continue;
    std::string& names = by_reason[counts[i].problem];
    names += (names.empty() ? "" : ", ") + std::string(kNames[i]);
  }
  TextPage page(style);
  for (const auto& [reason, names] : by_reason)
    page.paragraph("  ", fmt::format("not counted: {}: {}", names, reason), 2);
  return page.take();
}

std::string render_counters_json(const CountersShown& shown) {
  nlohmann::ordered_json out{{"seconds", shown.seconds},
                             {"counters", nlohmann::ordered_json::object()},
                             {"ratios", nlohmann::ordered_json::object()}};
  for (size_t i = 0; i < shown.counts.size(); ++i) {
    const model::Count& count = shown.counts[i];
    nlohmann::ordered_json entry{{"counted", count.counted}};
    if (count.counted) {
      entry["value"] = count.value;
      entry["counted_share"] = count.counted_share;
    } else {
      entry["problem"] = count.problem;
    }
    out["counters"][std::string(kNames[i])] = entry;
  }
  for (const analysis::CounterRatio& ratio : analysis::counter_ratios(shown.counts))
    out["ratios"][ratio.id] = {{"value", ratio.value}, {"counted_share", ratio.counted_share}};
  if (shown.requests > 0) out["requests"] = shown.requests;
  if (shown.besides == nullptr) return out.dump();
  const CountedBesides& besides = *shown.besides;
  out["top_down"] = {{"shares", nlohmann::ordered_json::object()}};
  for (const analysis::TopDownShare& share : analysis::top_down(besides.top_down))
    out["top_down"]["shares"][std::string(share.id)] = share.share;
  if (!besides.top_down.problem.empty()) out["top_down"]["problem"] = besides.top_down.problem;
  out["syscalls"] = {{"total", besides.syscalls},
                     {"source", besides.syscall_source},
                     {"by_name", nlohmann::ordered_json::object()}};
  for (const SyscallShown& call : besides.by_syscall)
    out["syscalls"]["by_name"][call.name] = call.calls;
  return out.dump();
}

}  // namespace assay::report
