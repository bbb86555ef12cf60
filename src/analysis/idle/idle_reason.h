// IdleReason: why a wait is a wait for work, or why it is not.
//
// The table is in idle_reason.cpp; `report --why idle`, the JSON report and the table in
// docs/verdict.md are written from it. Who decides is idle_judge.h's matter. Pure; never fails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace assay::analysis {

enum class IdleReason : uint8_t {
  // Idle.
  known_loop,
  client_connection,
  kept_open,
  clients_only,
  housekeeping,
  own_clock,
  own_loop,
  only_wait_of_loop,
  resting_place,
  // Not idle.
  known_call,
  never_for_work,
  asked_outside,
  sleeps_at_work,
  inside_work,
  asks_first,
  branch_works,
  no_resting_place,
  no_evidence,
};
inline constexpr int kIdleReasonCount = static_cast<int>(IdleReason::no_evidence) + 1;

struct IdleReasonRow {
  IdleReason kind;
  std::string_view id;
  bool idle;
  std::string_view because;  // "idle because …", "not idle because …"
};

std::span<const IdleReasonRow> idle_reasons();
const IdleReasonRow& describe(IdleReason reason);

inline bool is_idle(IdleReason reason) {
  return describe(reason).idle;
}

}  // namespace assay::analysis
