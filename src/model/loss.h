// Loss: what the capture knows it missed. Loss is data: it is stored, weighted and shown.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace assay::model {

enum class LossKind : uint8_t {
  ring_records = 0,       // the kernel's ring was full; `count` records of unknown kind
  dropped_samples = 1,    // we fell behind and dropped on-CPU samples on purpose
  dropped_stacks = 2,     // we fell behind and dropped stack copies on purpose
  throttled = 3,          // the kernel throttled the event
  out_of_order = 4,       // a record came later than the merge could wait for
  malformed = 5,          // a record that could not be parsed
  untracked_threads = 6,  // threads that could not be followed (fd limit, died too soon)
  side_band_records = 7,  // as ring_records, in the ring of mmap, fork, exit and SWITCH records
};
inline constexpr int kLossKindCount = 8;

struct Loss {
  LossKind kind = LossKind::ring_records;
  int32_t cpu = -1;  // ring; -1 when it is of no single ring
  TimeNs time = 0;
  uint64_t count = 0;
};

const char* loss_kind_name(LossKind kind);

}  // namespace assay::model
