// Accelerators: how busy the devices of a run were, by the series that the capture polled.
//
// In: facts and series of a run; out: one row for each device, those of the target first, the
// busiest first. A value is the mean over the time in which it was polled. Pure but for reading.
// Failures: the Reader's. Figures that were not polled are absent.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "model/device/accelerator.h"
#include "run/reader.h"

namespace assay::analysis {

struct AcceleratorUse {
  model::Accelerator about;
  std::optional<double> busy;          // share of the time in which it computed
  std::optional<double> memory_bytes;  // in use
  std::optional<double> power_w;
  std::optional<double> throttled;  // share of the time in which power or heat held its clocks down
  std::optional<double> temperature_c;

  // "NVIDIA H200", or its device's name where the driver's library did not say.
  const std::string& name() const { return about.name.empty() ? about.device : about.name; }
};

Result<std::vector<AcceleratorUse>> read_accelerators(const run::Reader& reader);

// Of those that the target uses; null: none, or it is not known how busy they are.
const AcceleratorUse* busiest_accelerator(const std::vector<AcceleratorUse>& all);

// "NVIDIA H200 (nvidia0): 99.0 % busy, 693 W of 700 W, 12 GB of 140 GB, throttled 40 % of the
// time".
std::string figures_of(const AcceleratorUse& accelerator);

}  // namespace assay::analysis
