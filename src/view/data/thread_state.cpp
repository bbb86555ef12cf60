#include "view/data/thread_state.h"

namespace assay::view {

std::string_view state_id(ThreadState state) {
  if (state >= kFirstBlocked && state < kStateCount) {
    return analysis::block_kind_id(static_cast<analysis::BlockKind>(state - kFirstBlocked));
  }
  constexpr std::string_view kIds[] = {"user", "kernel", "runqueue", "idle", "running"};
  return state < std::size(kIds) ? kIds[state] : std::string_view();
}

std::string_view state_name(ThreadState state) {
  if (state >= kFirstBlocked && state < kStateCount) {
    return analysis::block_kind_name(static_cast<analysis::BlockKind>(state - kFirstBlocked));
  }
  constexpr std::string_view kNames[] = {"user code", "kernel", "run queue", "idle", "running"};
  return state < std::size(kNames) ? kNames[state] : std::string_view();
}

}  // namespace assay::view
