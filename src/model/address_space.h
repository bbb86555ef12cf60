// AddressSpace: what code is mapped where in one process, at one moment.
//
// Records are applied in time order, and a lookup is valid for the time of the last applied record.
// So samples of an unloaded library are resolved before its addresses are reused. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "model/ids.h"

namespace assay::model {

// One executable mapping. `file_offset` is the offset in the module of the byte at `start`.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  ModuleId module;

  uint64_t to_module_address(uint64_t address) const { return address - start + file_offset; }
};

class AddressSpace {
 public:
  // Maps a range; parts of other mappings that it overlaps are removed first, as mmap(MAP_FIXED)
  // does.
  void map(const Mapping& mapping);
  void clear() {
    ++generation_;
    by_start_.clear();
  }

  const Mapping* find(uint64_t address) const;  // null when nothing executable is mapped there
  const std::map<uint64_t, Mapping>& all() const { return by_start_; }

  // Counts changes, so that caches of lookups know when they are stale.
  uint64_t generation() const { return generation_; }

 private:
  std::map<uint64_t, Mapping> by_start_;
  uint64_t generation_ = 0;
};

}  // namespace assay::model
