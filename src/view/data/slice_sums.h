// SliceSums: time and counts by slice of time, thread, state and node, packed, so that a question
// about a long range adds up sums instead of reading every row again.
//
// In: add() in any order, best with time, then finish(). Out: for_each() over whole slices; what
// lies in a part of a slice must be read from the run. Memory: at most about `most_bytes` of packed
// sums (and what is being added up); where more would be needed two slices become one, and from one
// slice on nothing is kept (count() is 0 then). Threads: const calls may run at once. Failures:
// none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view/data/bins.h"
#include "view/data/cell_map.h"
#include "view/data/thread_state.h"

namespace assay::view {

class SliceSums {
 public:
  SliceSums(TimeNs begin_ns, TimeNs end_ns, uint32_t slices, size_t threads, size_t most_bytes);

  // As given; add() takes these whatever was joined since.
  const Bins& bins() const { return bins_; }
  void add(uint32_t bin, model::ThreadId thread, uint8_t state, uint32_t node, int64_t ns,
           uint64_t count);
  void finish();

  // Slices as they are now: of so many bins each, but for the last.
  uint32_t count() const { return kept_ ? (bins_.count() + width() - 1) / width() : 0; }
  uint32_t width() const { return 1u << shift_; }
  uint32_t slice_of(TimeNs time_ns) const { return bins_.of(time_ns) >> shift_; }
  TimeNs border(uint32_t slice) const {
    return bins_.border(
        static_cast<uint32_t>(std::min<uint64_t>(uint64_t{slice} << shift_, bins_.count())));
  }
  size_t packed_bytes() const { return packed_bytes_; }

  // visit(slice, thread, state, node, ns, count) for slices [first, last) of the wanted threads,
  // one thread after the other; the same cell may come more than once.
  template <class Wants, class Visit>
  void for_each(uint32_t first, uint32_t last, const Wants& wants, const Visit& visit) const {
    for (uint32_t thread = 0; thread < lanes_.size(); ++thread) {
      if (!wants(model::ThreadId{thread})) continue;
      for (const Part& part : lanes_[thread].parts) {
        if (part.slice < first || part.slice >= last) continue;
        unpack(lanes_[thread], part, [&](uint64_t place, int64_t ns, uint64_t count) {
          visit(part.slice, model::ThreadId{thread}, static_cast<uint8_t>(place >> kNodeBits),
                static_cast<uint32_t>(place & kNodeMask), ns, count);
        });
      }
    }
  }

 private:
  static constexpr int kNodeBits = 32, kPlaceBits = kNodeBits + 8;
  static constexpr uint64_t kNodeMask = (uint64_t{1} << kNodeBits) - 1;

  struct Part {
    uint32_t slice = 0;
    uint32_t cells = 0;
    size_t offset = 0;
  };
  // One thread's sums.
  struct Lane {
    CellMap open{16};  // by slice, state and node
    uint32_t newest = 0;
    std::string packed;
    std::vector<Part> parts;
  };

  template <class Visit>
  static void unpack(const Lane& lane, const Part& part, const Visit& visit) {
    size_t at = part.offset;
    uint64_t place = 0;
    for (uint32_t i = 0; i < part.cells; ++i) {
      place += take(lane.packed, at);
      auto ns = static_cast<int64_t>(take(lane.packed, at));
      visit(place, ns, take(lane.packed, at));
    }
  }
  static uint64_t take(const std::string& bytes, size_t& at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  void seal(Lane& lane);
  void join_pairs();
  void drop();

  Bins bins_;
  std::vector<Lane> lanes_;
  size_t most_bytes_;
  size_t packed_bytes_ = 0;
  uint32_t shift_ = 0;
  bool kept_ = true;
};

}  // namespace assay::view
