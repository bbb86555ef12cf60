// CpuWatch: which CPUs were taken off or brought back since the last look.
//
// The kernel tells of it by uevents, so that a CPU which goes and comes between two looks is seen;
// where there are none (some containers), the list of CPUs that are online is compared. In: nothing.
// Out: changes, in their order. Threads: one. Failures: none are shown; what cannot be seen has not
// changed.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace assay::os {

struct CpuChange {
  int cpu = 0;
  bool online = false;
  bool operator==(const CpuChange&) const = default;
};

class CpuWatch {
 public:
  virtual ~CpuWatch() = default;
  virtual std::vector<CpuChange> changes() = 0;
  // Of this machine.
  static std::unique_ptr<CpuWatch> open();
};

// The change that a uevent tells of ("online@/devices/system/cpu/cpu1"); cpu −1: of something else.
CpuChange cpu_change_of(std::string_view uevent);
// What became of the CPUs that were online, by what was told and by the list of now, which is sometimes
// ahead of it: each change once. Brings `online` up to date.
std::vector<CpuChange> cpu_changes(std::set<int>& online, const std::vector<CpuChange>& told,
                                   const std::set<int>& now);

}  // namespace assay::os
