// VerdictKind: what a verdict can say, with everything that follows from the kind alone.
//
// The table is in verdict_kind.cpp. The schema of the JSON report, the table in docs/verdict.md and
// the lab's list are written from it by scripts/write-tables. Pure; never fails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace assay::analysis {

enum class VerdictKind : uint8_t {
  cpu,
  allocator,
  spin,
  network_stack,
  serial_stage,
  lock,
  disk,
  network,
  downstream,
  timer,
  scheduler,
  throttled,
  accelerator,
  concurrency_limited,
  underloaded,
  mixed,
  withheld,
};
inline constexpr size_t kVerdictKindCount = static_cast<size_t>(VerdictKind::withheld) + 1;

// What is short where a verdict of this kind is given.
enum class Limit : uint8_t {
  none,     // nothing of the server, or nothing that can be named
  cpu,      // time on the CPUs
  waiting,  // what threads wait for
  load,     // requests: the server could do more
};

struct VerdictKindRow {
  VerdictKind kind;
  std::string_view id;    // "serial-stage": for programs and in texts
  std::string_view stem;  // how a sentence that says so begins
  Limit limit;
  bool rests_on_samples;          // too few samples withhold it
  std::string_view next_step;     // the experiment that would tell most
  std::string_view next_command;  // the same as a command; {} is the target, RUN the run
};

std::span<const VerdictKindRow> verdict_kinds();
const VerdictKindRow& describe(VerdictKind kind);
std::optional<VerdictKind> verdict_kind_of(std::string_view id);
std::string_view limit_id(Limit limit);

inline std::string_view verdict_kind_id(VerdictKind kind) {
  return describe(kind).id;
}

}  // namespace assay::analysis
