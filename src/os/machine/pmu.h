// Pmu: what the CPU's counting unit is and which events the kernel names for it, from sysfs.
//
// In: a root ("" for the machine's own; tests hand in a FakeTree). Out: the unit's number for
// perf_event_open, its events as numbers, the CPU's vendor, family and model. Hybrid CPUs: the
// performance cores' unit. Failures: there is no such unit (virtual machines, usually); an event
// whose text is not understood is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::os {

struct PmuEvent {
  uint64_t config = 0;
  double scale = 1;  // what one count stands for
};

struct Pmu {
  uint32_t type = 0;
  std::map<std::string, PmuEvent> events;  // "topdown-retiring"
  std::string vendor;                      // "GenuineIntel", "AuthenticAMD"
  int family = 0;
  int model = 0;
};

Result<Pmu> read_pmu(const std::string& root = "");

// "event=0xa0,umask=0x1" by the unit's fields ("event" → "config:0-7,32-35"); nullopt when a term
// is unknown or too large.
std::optional<uint64_t> event_config(std::string_view text,
                                     const std::map<std::string, std::string>& fields);

}  // namespace assay::os
