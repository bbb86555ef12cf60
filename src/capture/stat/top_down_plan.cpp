#include "capture/stat/top_down_plan.h"

#include <fmt/format.h>

namespace assay::capture {
namespace {

using model::TopDownMethod;

constexpr uint64_t amd(uint64_t event, uint64_t umask) {
  return (event & 0xff) | (event >> 8) << 32 | umask << 8;
}

bool add_named(const os::Pmu& pmu, const char* name, std::vector<PlannedEvent>& group) {
  auto found = pmu.events.find(name);
  if (found == pmu.events.end()) return false;
  group.push_back({name, found->second.config, found->second.scale});
  return true;
}

// All of them, or nothing.
std::vector<PlannedEvent> named(const os::Pmu& pmu, std::initializer_list<const char*> names) {
  std::vector<PlannedEvent> group;
  for (const char* name : names) {
    if (!add_named(pmu, name, group)) return {};
  }
  return group;
}

Result<TopDownPlan> plan_intel(const os::Pmu& pmu) {
  TopDownPlan plan;
  plan.type = pmu.type;
  // The hardware's own metrics need "slots" as the leader of the group.
  auto metrics = named(pmu, {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound",
                             "topdown-be-bound"});
  if (!metrics.empty()) {
    plan.method = TopDownMethod::intel_metrics;
    for (const char* second :
         {"topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound"})
      add_named(pmu, second, metrics);
    plan.groups.push_back(std::move(metrics));
    return plan;
  }
  auto slots = named(pmu, {"topdown-total-slots", "topdown-slots-issued", "topdown-slots-retired",
                           "topdown-fetch-bubbles", "topdown-recovery-bubbles"});
  if (slots.empty()) return fail("the kernel names no top-down events for this CPU");
  plan.method = TopDownMethod::intel_slots;
  plan.groups.push_back(std::move(slots));
  return plan;
}

Result<TopDownPlan> plan_amd(const os::Pmu& pmu) {
  // Family 19h holds Zen 3 and Zen 4; Zen 3's models have no counters of dispatch slots.
  bool zen4 = pmu.family == 0x19 && ((pmu.model >= 0x10 && pmu.model <= 0x1f) ||
                                     (pmu.model >= 0x60 && pmu.model <= 0xaf));
  bool zen5 = pmu.family == 0x1a;
  if (!zen4 && !zen5)
    return fail("top-down analysis is known for Zen 4 and later; this is family {:#x}, model {:#x}",
                pmu.family, pmu.model);
  TopDownPlan plan;
  plan.method = TopDownMethod::zen;
  plan.type = pmu.type;
  plan.slots_per_cycle = zen5 ? 8 : 6;
  // There are six counters; five events leave one for the watchdog.
  plan.groups.push_back({{"ls_not_halted_cyc", amd(0x76, 0), 1},
                         {"de_src_op_disp.all", amd(0xaa, 0x07), 1},
                         {"ex_ret_ops", amd(0xc1, 0), 1},
                         {"de_no_dispatch_per_slot.no_ops_from_frontend", amd(0x1a0, 0x01), 1},
                         {"de_no_dispatch_per_slot.backend_stalls", amd(0x1a0, 0x1e), 1}});
  plan.groups.push_back({{"ex_no_retire.not_complete", amd(0xd6, 0x02), 1},
                         {"ex_no_retire.load_not_complete", amd(0xd6, 0xa2), 1},
                         {"ex_ret_brn_misp", amd(0xc3, 0), 1},
                         {"resyncs_or_nc_redirects", amd(0x96, 0), 1},
                         {"de_no_dispatch_per_slot.smt_contention", amd(0x1a0, 0x60), 1}});
  return plan;
}

}  // namespace

Result<TopDownPlan> plan_top_down(const os::Pmu& pmu) {
  if (pmu.vendor == "GenuineIntel") return plan_intel(pmu);
  if (pmu.vendor == "AuthenticAMD") return plan_amd(pmu);
  return fail("top-down analysis is known for Intel's and AMD's CPUs");
}

}  // namespace assay::capture
