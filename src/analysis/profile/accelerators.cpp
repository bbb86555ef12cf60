#include "analysis/profile/accelerators.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "analysis/profile/gauge.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

struct SeriesField {
  std::string_view series;
  std::optional<double> AcceleratorUse::*field;
  double scale;
};
constexpr std::array kFields{
    SeriesField{model::kAcceleratorBusy, &AcceleratorUse::busy, 1e-3},
    SeriesField{model::kAcceleratorMemory, &AcceleratorUse::memory_bytes, 1},
    SeriesField{model::kAcceleratorPower, &AcceleratorUse::power_w, 1e-3},
    SeriesField{model::kAcceleratorThrottled, &AcceleratorUse::throttled, 1},
    SeriesField{model::kAcceleratorTemperature, &AcceleratorUse::temperature_c, 1},
};

}  // namespace

Result<std::vector<AcceleratorUse>> read_accelerators(const run::Reader& reader) {
  const run::Contents& run = reader.contents();
  std::vector<AcceleratorUse> all;
  for (model::Accelerator& one : model::accelerators_in(run.facts)) {
    AcceleratorUse& use = all.emplace_back();
    use.about = std::move(one);
    for (const model::Series& series : run.series) {
      if (series.scope != model::SeriesScope::host || series.label != use.about.device) continue;
      auto field = std::ranges::find(kFields, series.name, &SeriesField::series);
      if (field == kFields.end()) continue;
      auto points = reader.points(series.id);
      if (!points) return std::unexpected(points.error());
      auto mean = gauge_of(*points, run.info.window_begin_ns, run.info.window_end_ns).mean;
      if (mean) use.*field->field = std::max(0.0, *mean * field->scale);
    }
    for (auto share : {&AcceleratorUse::busy, &AcceleratorUse::throttled})
      if (use.*share) use.*share = std::min(1.0, *(use.*share));
  }
  std::ranges::stable_sort(all, [](const AcceleratorUse& a, const AcceleratorUse& b) {
    return std::tuple(a.about.used_by_target, a.busy.value_or(-1)) >
           std::tuple(b.about.used_by_target, b.busy.value_or(-1));
  });
  return all;
}

const AcceleratorUse* busiest_accelerator(const std::vector<AcceleratorUse>& all) {
  bool known = !all.empty() && all[0].about.used_by_target && all[0].busy;
  return known ? &all[0] : nullptr;
}

std::string figures_of(const AcceleratorUse& a) {
  std::string text =
      a.about.name.empty() ? a.about.device : fmt::format("{} ({})", a.about.name, a.about.device);
  std::string separator = ": ";
  auto add = [&](const std::string& figure) {
    text += separator + figure;
    separator = ", ";
  };
  if (a.busy) add(fmt::format("{} busy", format_percent(*a.busy)));
  if (a.power_w)
    add(a.about.power_limit_w
            ? fmt::format("{:.0f} W of {:.0f} W", *a.power_w, *a.about.power_limit_w)
            : fmt::format("{:.0f} W", *a.power_w));
  if (a.memory_bytes) {
    std::string used = format_bytes(static_cast<uint64_t>(*a.memory_bytes));
    add(a.about.memory_bytes
            ? fmt::format("{} of {} memory", used, format_bytes(*a.about.memory_bytes))
            : fmt::format("{} memory", used));
  }
  if (a.temperature_c) add(fmt::format("{:.0f} °C", *a.temperature_c));
  if (a.throttled.value_or(0) > 0)
    add(fmt::format("clocks held down by power or heat {} of the time",
                    format_percent(*a.throttled)));
  if (!a.about.used_by_target) add("not used by the target");
  return text;
}

}  // namespace assay::analysis
