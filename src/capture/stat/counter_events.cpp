#include "capture/stat/counter_events.h"

#include <array>

namespace assay::capture {
namespace {

constexpr uint64_t cache(uint64_t which, uint64_t result) {
  return which | uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8 | result << 16;
}
constexpr uint64_t kAccess = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
constexpr uint64_t kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;

constexpr CounterEvent software(CounterId id, std::string_view name, uint64_t config) {
  return {id, name, PERF_TYPE_SOFTWARE, config, false};
}
constexpr CounterEvent hardware(CounterId id, std::string_view name, uint64_t config) {
  return {id, name, PERF_TYPE_HARDWARE, config, true};
}
constexpr CounterEvent cached(CounterId id, std::string_view name, uint64_t config) {
  return {id, name, PERF_TYPE_HW_CACHE, config, true};
}

using enum CounterId;

constexpr std::array<CounterEvent, kCounterCount> kEvents{
    software(cpu_clock, "task-clock", PERF_COUNT_SW_TASK_CLOCK),
    software(context_switches, "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES),
    software(migrations, "cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS),
    software(minor_faults, "minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN),
    software(major_faults, "major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    hardware(cycles, "cycles", PERF_COUNT_HW_CPU_CYCLES),
    hardware(instructions, "instructions", PERF_COUNT_HW_INSTRUCTIONS),
    hardware(branches, "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    hardware(branch_misses, "branch-misses", PERF_COUNT_HW_BRANCH_MISSES),
    hardware(frontend_stalls, "stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    hardware(backend_stalls, "stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    cached(l1d_loads, "L1-dcache-loads", cache(PERF_COUNT_HW_CACHE_L1D, kAccess)),
    cached(l1d_misses, "L1-dcache-load-misses", cache(PERF_COUNT_HW_CACHE_L1D, kMiss)),
    cached(llc_loads, "LLC-loads", cache(PERF_COUNT_HW_CACHE_LL, kAccess)),
    cached(llc_misses, "LLC-load-misses", cache(PERF_COUNT_HW_CACHE_LL, kMiss)),
    cached(dtlb_loads, "dTLB-loads", cache(PERF_COUNT_HW_CACHE_DTLB, kAccess)),
    cached(dtlb_misses, "dTLB-load-misses", cache(PERF_COUNT_HW_CACHE_DTLB, kMiss)),
};

constexpr std::array kClock{cpu_clock};
constexpr std::array kSwitches{context_switches};
constexpr std::array kMigrations{migrations};
constexpr std::array kMinorFaults{minor_faults};
constexpr std::array kMajorFaults{major_faults};
// Four at most: every x86 and Arm core of the last decade has that many counters.
constexpr std::array kCore{cycles, instructions, branches, branch_misses};
constexpr std::array kStalls{frontend_stalls, backend_stalls};
constexpr std::array kCaches{l1d_loads, l1d_misses, llc_loads, llc_misses};
constexpr std::array kTlb{dtlb_loads, dtlb_misses};

constexpr std::array<std::span<const CounterId>, 9> kGroups{
    kClock, kSwitches, kMigrations, kMinorFaults, kMajorFaults, kCore, kStalls, kCaches, kTlb};

}  // namespace

std::span<const CounterEvent> counter_events() {
  return kEvents;
}

const CounterEvent& counter_event(CounterId id) {
  return kEvents[static_cast<size_t>(id)];
}

std::span<const std::span<const CounterId>> counter_groups() {
  return kGroups;
}

perf_event_attr counter_attributes(const CounterEvent& event, bool user_only) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.exclude_kernel = user_only ? 1 : 0;
  attr.exclude_hv = user_only ? 1 : 0;
  return attr;
}

}  // namespace assay::capture
