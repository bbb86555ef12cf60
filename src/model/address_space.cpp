#include "model/address_space.h"

#include <algorithm>

namespace assay::model {

void AddressSpace::map(const Mapping& mapping) {
  ++generation_;
  if (mapping.start >= mapping.end) return;
  auto it = by_start_.upper_bound(mapping.start);
  if (it != by_start_.begin() && std::prev(it)->second.end > mapping.start) --it;
  while (it != by_start_.end() && it->second.start < mapping.end) {
    Mapping old = it->second;
    it = by_start_.erase(it);
    if (old.start < mapping.start) {
      Mapping left = old;
      left.end = mapping.start;
      by_start_.emplace(left.start, left);
    }
    if (old.end > mapping.end) {
      Mapping right = old;
      right.file_offset += mapping.end - old.start;
      right.start = mapping.end;
      it = by_start_.emplace(right.start, right).first;
      break;
    }
  }
  by_start_.emplace(mapping.start, mapping);
}

const Mapping* AddressSpace::find(uint64_t address) const {
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  --it;
  return address < it->second.end ? &it->second : nullptr;
}

}  // namespace assay::model
