// What a thread may be doing at one moment, as the page counts it: each moment has one state.
//
// The numbers are those of the data endpoints (docs/view.md) and are never reused.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/time/wait_kind.h"

namespace assay::view {

using ThreadState = uint8_t;
inline constexpr ThreadState kUser = 0;
inline constexpr ThreadState kKernel = 1;
inline constexpr ThreadState kRunqueue = 2;
inline constexpr ThreadState kIdle = 3;
inline constexpr ThreadState kRunning = 4;  // user or kernel: known from the gaps between waits
inline constexpr ThreadState kFirstBlocked = 8;
inline constexpr int kStateCount = kFirstBlocked + analysis::kBlockKindCount;

inline ThreadState blocked_state(analysis::BlockKind kind) {
  return static_cast<ThreadState>(kFirstBlocked + static_cast<int>(kind));
}

std::string_view state_id(ThreadState state);    // "lock": for programs; "" when there is none
std::string_view state_name(ThreadState state);  // for people

}  // namespace assay::view
