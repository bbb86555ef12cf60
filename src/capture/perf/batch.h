// Batch: the records that one round over all rings read, in one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"

namespace assay::capture {

// How hard the reader must save memory. Side-band records (mmap, fork, switch…) are never dropped.
enum class Pressure : uint8_t { none, cut_stacks, drop_samples };

struct Batch {
  struct Entry {
    TimeNs time = 0;
    uint32_t offset = 0;  // in bytes; records are 8-byte aligned
    uint32_t size = 0;
  };

  TimeNs drained_at =
      0;  // when the round began: all earlier records of all rings are in or before it
  std::vector<std::byte> bytes;
  std::vector<Entry> entries;
  // Losses of this round, by ring where the kernel reported them.
  struct RingLoss {
    int cpu = -1;
    bool side_band = false;
    uint64_t records = 0;
  };
  std::vector<RingLoss> ring_losses;
  uint64_t dropped_samples = 0;
  uint64_t cut_stacks = 0;
  uint64_t malformed = 0;
  uint64_t throttled = 0;

  std::span<const std::byte> record(const Entry& entry) const {
    return std::span(bytes).subspan(entry.offset, entry.size);
  }
};

}  // namespace assay::capture
