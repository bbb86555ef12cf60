#include "symbol/dwarf/debug_info.h"

#include <algorithm>

#include <dwarf.h>

namespace assay::symbol {
namespace {

constexpr size_t kMaxRangesPerUnit = 1 << 20;
constexpr size_t kMaxIndexRanges = 4 << 20;
constexpr int kMaxOverlaps = 64;
constexpr uint64_t kMaxTableBytes = 96 << 20;
constexpr uint64_t kTrimStep = 256;  // units between givings back of memory

// The same build id may come with more or less debug information, so that tells caches apart.
uint64_t fingerprint(ElfFile& file) {
  uint64_t sizes[2] = {file.source().size(), 0};
  if (const auto* info = file.find(".debug_info")) sizes[1] = info->size;
  return checksum_bytes({reinterpret_cast<const char*>(sizes), sizeof(sizes)});
}

uint64_t bytes_of(const UnitTable& table) {
  return table.rows.capacity() * sizeof(LineRow) + table.spans.capacity() * sizeof(FunctionSpan) +
         table.nodes.capacity() * sizeof(FunctionNode) + table.ranges.capacity() * sizeof(PcRange) +
         table.names.capacity() * sizeof(NameRef) + table.files.capacity() * sizeof(TextRef) +
         table.pool.capacity();
}

}  // namespace

DebugInfo::DebugInfo(ElfFile& file, std::string path, std::vector<PcRange> code, DebugFiles& files,
                     const std::string& cache_dir, const std::string& build_id)
    : files_(files),
      path_(std::move(path)),
      code_(std::move(code)),
      file_(file),
      cache_(cache_dir, build_id, fingerprint(file)) {}

uint64_t DebugInfo::effort_bytes() const {
  if (indexed_ || cache_.has_index()) return 0;
  return file_.expected_bytes(".debug_info") + file_.expected_bytes(".debug_line");
}

DwarfFile& DebugInfo::dwarf() {
  if (!dwarf_) dwarf_ = std::make_unique<DwarfFile>(file_, false);
  return *dwarf_;
}

bool DebugInfo::is_code(uint64_t address) const {
  return std::any_of(code_.begin(), code_.end(), [&](const PcRange& range) {
    return range.start <= address && address < range.end;
  });
}

// From the unit's own root; a root that says nothing is asked for its functions' ranges.
std::vector<PcRange> DebugInfo::ranges_of(DwarfUnit& unit) {
  std::vector<PcRange> out;
  unit.ranges(unit.root(), out, kMaxRangesPerUnit);
  if (out.empty() && unit.root().stmt_list && !unit.root().low_pc && !unit.root().ranges) {
    auto keep = [this](uint64_t address) { return is_code(address); };
    for (const auto& span : build_unit_table(unit, unit, keep).spans)
      out.push_back({span.start, span.end});
  }
  return out;
}

void DebugInfo::make_index() {
  if (indexed_) return;
  indexed_ = true;
  auto cached = cache_.index();
  if (cached) {
    index_ = std::move(*cached);
  } else {
    size_t count = dwarf().units().size();
    for (size_t i = 0; i < count && index_.size() < kMaxIndexRanges; ++i) {
      uint8_t type = dwarf().units()[i].type;
      if (type == DW_UT_type || type == DW_UT_partial) continue;
      DwarfUnit* unit = dwarf().unit(i);
      if (unit == nullptr || unit->root_tag() == DW_TAG_partial_unit) continue;
      for (const PcRange& range : ranges_of(*unit)) {
        if (is_code(range.start))
          index_.push_back({range.start, range.end, static_cast<uint32_t>(i), 0});
      }
      if (i % kTrimStep == kTrimStep - 1) dwarf().trim();
    }
    dwarf().trim();
    std::stable_sort(index_.begin(), index_.end(),
                     [](const UnitRange& a, const UnitRange& b) { return a.start < b.start; });
    if (cache_.on_disk()) cache_.keep_index(index_);
  }
  uint64_t end = 0;
  for (const auto& range : index_) max_end_.push_back(end = std::max(end, range.end));
}

uint32_t DebugInfo::unit_of(uint64_t address) {
  make_index();
  auto it =
      std::upper_bound(index_.begin(), index_.end(), address,
                       [](uint64_t value, const UnitRange& range) { return value < range.start; });
  auto at = static_cast<size_t>(it - index_.begin());
  for (int i = 0; i < kMaxOverlaps && at > 0; ++i) {
    --at;
    if (max_end_[at] <= address) break;
    if (address < index_[at].end) return index_[at].unit;
  }
  return kNoUnit;
}

void DebugInfo::find(uint64_t address, bool inlines, std::vector<model::Location>& out) {
  uint32_t unit = unit_of(address);
  if (unit != kNoUnit) table_of(unit).find(address, inlines, out);
}

UnitTable& DebugInfo::table_of(uint32_t unit) {
  auto [it, fresh] = tables_.try_emplace(unit);
  Held& held = it->second;
  held.last_use = ++uses_;
  if (fresh) {
    auto cached = cache_.unit(unit);
    held.table = cached ? std::move(*cached) : build(unit);
    if (!cached && cache_.on_disk()) cache_.keep_unit(unit, held.table);
    held.bytes = bytes_of(held.table);
    table_bytes_ += held.bytes;
    evict_beyond_limit(unit);
  }
  return held.table;
}

void DebugInfo::evict_beyond_limit(uint32_t keep) {
  while (table_bytes_ > kMaxTableBytes && tables_.size() > 1) {
    auto oldest = tables_.end();
    for (auto it = tables_.begin(); it != tables_.end(); ++it) {
      if (it->first == keep) continue;
      if (oldest == tables_.end() || it->second.last_use < oldest->second.last_use) oldest = it;
    }
    // What may be wanted again is kept compressed, which is several times smaller than building it
    // anew.
    if (!cache_.has_unit(oldest->first)) cache_.keep_unit(oldest->first, oldest->second.table);
    table_bytes_ -= oldest->second.bytes;
    tables_.erase(oldest);
  }
}

UnitTable DebugInfo::build(uint32_t index) {
  DwarfUnit* unit = dwarf().unit(index);
  if (unit == nullptr) return {};
  if (!alt_looked_for_) {
    alt_looked_for_ = true;
    FoundFile alt = files_.find_alt(dwarf().elf(), path_);
    if (alt.file) dwarf().set_alt(std::make_unique<DwarfFile>(std::move(alt.file), false));
  }
  auto keep = [this](uint64_t address) { return is_code(address); };
  bool missing = false;
  std::unique_ptr<DwarfUnit> split = split_part(*unit, missing);
  UnitTable table = build_unit_table(split ? *split : *unit, *unit, keep);
  table.complete = !missing;
  dwarf().trim();
  return table;
}

std::unique_ptr<DwarfUnit> DebugInfo::split_part(DwarfUnit& skeleton, bool& missing) {
  const std::string& name = skeleton.dwo_name();
  if (name.empty() || skeleton.dwo_id() == 0) return nullptr;
  if (!dwp_looked_for_) {
    dwp_looked_for_ = true;
    FoundFile package = files_.find_dwp();
    if (package.file) dwp_ = std::make_unique<DwarfFile>(std::move(package.file), true);
  }
  if (dwp_) {
    if (auto unit = dwp_->split_unit(skeleton.dwo_id(), skeleton)) return unit;
  }
  FoundFile found = files_.find_dwo(std::string(skeleton.comp_dir()), name);
  if (found.file) {
    dwo_ = std::make_unique<DwarfFile>(std::move(found.file), true);
    if (auto unit = dwo_->split_unit(skeleton.dwo_id(), skeleton)) return unit;
  }
  missing = true;
  return nullptr;
}

}  // namespace assay::symbol
