#include "analysis/verdict/verdict_kind.h"

#include <array>

#include "analysis/kind_table.h"

namespace assay::analysis {
namespace {

using enum VerdictKind;

constexpr std::string_view kRecordAgain = "assay record {} --for 30s -o after.assay";

constexpr std::array<VerdictKindRow, kVerdictKindCount> kRows{{
    {cpu, "cpu", "CPU-bound", Limit::cpu, true,
     "Make the first finding cheaper, then record again under the same load and compare.",
     "assay record {} --for 30s -o after.assay && assay diff after.assay --vs RUN"},
    {allocator, "allocator", "CPU-bound", Limit::cpu, true,
     "Try another allocator without changing code, and compare.",
     "LD_PRELOAD=libtcmalloc_minimal.so.4 SERVER…, then assay record {} -o after.assay"},
    {spin, "spin", "Spinning", Limit::cpu, true,
     "Replace the spinning by a blocking wait, or give it fewer threads, and compare.",
     kRecordAgain},
    {network_stack, "network-stack", "CPU-bound", Limit::cpu, true,
     "Send and receive more per system call, and compare CPU per request.", kRecordAgain},
    {serial_stage, "serial-stage", "A serial stage", Limit::cpu, true,
     "Run the stage on a second thread, or halve its work; throughput should follow.",
     kRecordAgain},
    {lock, "lock", "Held back by a lock", Limit::waiting, false,
     "Shorten what is done under the lock, or split it, and compare.", kRecordAgain},
    {disk, "disk", "Waits for storage", Limit::waiting, false,
     "Take the write off the request path, or put the directory on a memory file system once.",
     kRecordAgain},
    {network, "network", "Held back by the network or slow readers", Limit::waiting, false,
     "Check that the client reads fast enough.", "ss -tin state established"},
    {downstream, "downstream", "Waits for another service", Limit::waiting, false,
     "Record the server that it waits for during the same load.",
     "assay record --port DOWNSTREAM_PORT --for 30s"},
    {timer, "timer", "Waits for timers", Limit::waiting, false,
     "Remove the sleep and measure throughput.", kRecordAgain},
    {scheduler, "scheduler", "Waits for a CPU", Limit::cpu, false,
     "Give it the CPUs it lacks, or move the neighbour, and compare.", kRecordAgain},
    {throttled, "throttled", "Throttled by its CPU quota", Limit::cpu, false,
     "Raise the CPU quota once and measure throughput.", kRecordAgain},
    {accelerator, "accelerator", "Waits for an accelerator", Limit::waiting, false,
     "Give the device less work per request, larger batches, or a second device, and compare.",
     kRecordAgain},
    {concurrency_limited, "concurrency-limited", "Not enough requests at once", Limit::load, false,
     "Offer more requests at once, until throughput stops growing.",
     "assay sweep {} --load URL --concurrency 1,2,4,8,16,32"},
    {underloaded, "underloaded", "Under-loaded", Limit::load, false,
     "Record it again under the load that you care about.", "assay record {} --load URL --for 30s"},
    {mixed, "mixed", "No single limit", Limit::none, false,
     "Vary the load: waits that grow with the load are the limit, waits that shrink are idle time.",
     "assay sweep {} --load URL --concurrency 1,2,4,8,16"},
    {withheld, "withheld", "No verdict", Limit::none, false, "Record again.",
     "assay record {} --for 30s"},
}};
static_assert(is_complete(kRows, kVerdictKindCount));

}  // namespace

std::span<const VerdictKindRow> verdict_kinds() {
  return kRows;
}

const VerdictKindRow& describe(VerdictKind kind) {
  return row_of(kRows, kind);
}

std::optional<VerdictKind> verdict_kind_of(std::string_view id) {
  return kind_with_id(kRows, id);
}

std::string_view limit_id(Limit limit) {
  constexpr std::array<std::string_view, 4> kIds{"none", "cpu", "waiting", "load"};
  return kIds[static_cast<size_t>(limit) % kIds.size()];
}

}  // namespace assay::analysis
