#include "view/data/slice_sums.h"

namespace assay::view {
namespace {

// Fewer cells are not worth sealing when time moves on, more are never left open.
constexpr size_t kWorthSealing = 2'000;
constexpr size_t kMostOpen = 200'000;

void put(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

}  // namespace

SliceSums::SliceSums(TimeNs begin_ns, TimeNs end_ns, uint32_t slices, size_t threads,
                     size_t most_bytes)
    : bins_(begin_ns, end_ns, slices), lanes_(threads), most_bytes_(most_bytes) {}

void SliceSums::add(uint32_t bin, model::ThreadId thread, uint8_t state, uint32_t node, int64_t ns,
                    uint64_t count) {
  if (!kept_ || thread.value >= lanes_.size()) return;
  Lane& lane = lanes_[thread.value];
  uint32_t slice = bin >> shift_;
  if (slice > lane.newest) {
    lane.newest = slice;
    if (lane.open.size() >= kWorthSealing) seal(lane);
  } else if (lane.open.size() >= kMostOpen) {
    seal(lane);
  }
  // Sealing may have joined slices.
  uint64_t key = uint64_t{bin >> shift_} << kPlaceBits | uint64_t{state} << kNodeBits | node;
  lane.open.add(key, ns, count);
}

void SliceSums::finish() {
  for (Lane& lane : lanes_) {
    if (kept_) seal(lane);
    lane.open = CellMap(1);
    lane.packed.shrink_to_fit();
    lane.parts.shrink_to_fit();
  }
}

void SliceSums::seal(Lane& lane) {
  uint64_t last_place = 0;
  size_t before = lane.packed.size() + lane.parts.size() * sizeof(Part);
  Part* part = nullptr;
  for (const Cell& cell : lane.open.sorted()) {
    auto slice = static_cast<uint32_t>(cell.key >> kPlaceBits);
    uint64_t place = cell.key & ((uint64_t{1} << kPlaceBits) - 1);
    if (part == nullptr || part->slice != slice) {
      part = &lane.parts.emplace_back(Part{slice, 0, lane.packed.size()});
      last_place = 0;
    }
    put(lane.packed, place - last_place);
    put(lane.packed, static_cast<uint64_t>(cell.ns));
    put(lane.packed, cell.count);
    last_place = place;
    ++part->cells;
  }
  lane.open.clear();
  packed_bytes_ += lane.packed.size() + lane.parts.size() * sizeof(Part) - before;
  while (kept_ && packed_bytes_ > most_bytes_) join_pairs();
}

void SliceSums::join_pairs() {
  if (count() <= 1) return drop();
  ++shift_;
  packed_bytes_ = 0;
  for (Lane& lane : lanes_) {
    CellMap joined;
    for (const Part& part : lane.parts) {
      unpack(lane, part, [&](uint64_t place, int64_t ns, uint64_t count) {
        joined.add(uint64_t{part.slice >> 1} << kPlaceBits | place, ns, count);
      });
    }
    for (const Cell& cell : lane.open.sorted()) {
      uint64_t slice = cell.key >> kPlaceBits;
      uint64_t place = cell.key & ((uint64_t{1} << kPlaceBits) - 1);
      joined.add(slice >> 1 << kPlaceBits | place, cell.ns, cell.count);
    }
    size_t most = most_bytes_;
    most_bytes_ = SIZE_MAX;  // judged once all lanes are joined
    lane.packed.clear();
    lane.parts.clear();
    lane.open = std::move(joined);
    seal(lane);
    most_bytes_ = most;
    lane.newest >>= 1;
  }
}

void SliceSums::drop() {
  kept_ = false;
  packed_bytes_ = 0;
  for (Lane& lane : lanes_) lane = Lane{};
}

}  // namespace assay::view
