#include "report/counters_text.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/counter_ratios.h"
#include "report/printable.h"
#include "report/text_page.h"

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
    page.line(fmt::format(
        "  {} {} {}  {}", left(kNames[i], 26),
        right(is_clock ? fmt::format("{:.1f} ms", count.value / 1e6) : amount(count.value), 14),
        right(rate, 14), page.ink(Ink::dim, turns)));
  }
  for (const analysis::CounterRatio& ratio : analysis::counter_ratios(shown.counts)) {
    page.line(fmt::format("  {} {}", left(ratio.name, 40),
                          ratio.is_share ? fmt::format("{:.2f} %", ratio.value * 100)
                                         : fmt::format("{:.2f}", ratio.value)));
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
  return out.dump();
}

}  // namespace assay::report
