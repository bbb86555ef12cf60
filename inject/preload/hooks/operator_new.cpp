#include "inject/preload/hooks/operator_new.h"

#include <atomic>

#include "inject/preload/hooks/loaded_object.h"

namespace assay::inject {

namespace {

const char* const kNames[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
};
constexpr size_t kFunctions = sizeof kNames / sizeof *kNames;

struct Range {
  std::atomic<uintptr_t> begin, bytes;
};
Range ranges[kFunctions];

bool is_operator_new(uintptr_t pc) {
  for (const Range& range : ranges) {
    // A return address may be the first byte after a function's last call.
    uintptr_t into = pc - 1 - range.begin.load(std::memory_order_relaxed);
    if (into < range.bytes.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

void find_operator_new() {
  for (size_t i = 0; i < kFunctions; ++i) {
    Definition found = find_definition(kNames[i]);
    if (!found.at) continue;
    ranges[i].begin.store(reinterpret_cast<uintptr_t>(found.at), std::memory_order_relaxed);
    ranges[i].bytes.store(found.bytes, std::memory_order_relaxed);
  }
}

uint32_t operator_new_frames(const uintptr_t* pcs, uint32_t frames) {
  uint32_t count = 0;
  while (count < frames && is_operator_new(pcs[count])) ++count;
  return count;
}

}  // namespace assay::inject
