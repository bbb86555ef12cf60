#include "unwind/code_map.h"

#include <algorithm>

namespace assay::unwind {

CodeMap::CodeMap(const model::AddressSpace& space, const TableOf& table_of) {
  for (const auto& [start, mapping] : space.all()) add(mapping, table_of(mapping.module));
}

// A mapping is cut at the borders of the module's executable segments: what a page-aligned mapping
// holds beyond them has no rows.
void CodeMap::add(const model::Mapping& mapping, const std::shared_ptr<const Table>& table) {
  uint64_t at = mapping.start;
  if (table) {
    tables_.push_back(table);
    const TableView& view = table->view();
    std::vector<Segment> segments(view.segments, view.segments + view.header->segment_count);
    std::ranges::sort(segments, {}, &Segment::file_offset);
    uint64_t map_bytes = mapping.end - mapping.start;
    for (const Segment& s : segments) {
      uint64_t first = std::max(s.file_offset, mapping.to_module_address(at));
      uint64_t last = std::min(s.file_offset + s.bytes, mapping.file_offset + map_bytes);
      if (first >= last) continue;
      uint64_t begin = first - mapping.file_offset + mapping.start;
      uint64_t end = last - mapping.file_offset + mapping.start;
      if (at < begin) ranges_.push_back({at, begin, 0, nullptr, table->is_go()});
      ranges_.push_back({begin, end, s.text - s.file_offset + mapping.file_offset - mapping.start,
                         &view, table->is_go()});
      at = end;
    }
  }
  if (at < mapping.end) ranges_.push_back({at, mapping.end, 0, nullptr, table && table->is_go()});
}

const CodeRange* CodeMap::search(uint64_t address) const {
  auto after = std::upper_bound(ranges_.begin() + 1, ranges_.end(), address,
                                [](uint64_t a, const CodeRange& r) { return a < r.begin; });
  const CodeRange& range = *std::prev(after);
  if (address - range.begin >= range.end - range.begin) return nullptr;
  last_ = static_cast<size_t>(&range - ranges_.data());
  return &range;
}

}  // namespace assay::unwind
