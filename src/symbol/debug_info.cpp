#include "symbol/debug_info.h"

#include <algorithm>

#include <dwarf.h>

namespace assay::symbol {
namespace {

constexpr size_t kMaxRangesPerUnit = 1 << 20;
constexpr size_t kMaxIndexRanges = 16 << 20;
constexpr int kMaxOverlaps = 64;
constexpr uint64_t kTrimStep = 256;  // units between givings back of memory

}  // namespace

DebugInfo::DebugInfo(ElfFile& file, std::string path, std::vector<PcRange> code, DebugFiles& files)
    : files_(files), path_(std::move(path)), code_(std::move(code)), dwarf_(file, false) {}

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

const std::vector<DebugInfo::UnitRange>& DebugInfo::unit_ranges() {
  if (indexed_) return index_;
  indexed_ = true;
  size_t count = dwarf_.units().size();
  for (size_t i = 0; i < count && index_.size() < kMaxIndexRanges; ++i) {
    uint8_t type = dwarf_.units()[i].type;
    if (type == DW_UT_type || type == DW_UT_partial) continue;
    DwarfUnit* unit = dwarf_.unit(i);
    if (unit == nullptr || unit->root_tag() == DW_TAG_partial_unit) continue;
    for (const PcRange& range : ranges_of(*unit)) {
      if (is_code(range.start))
        index_.push_back({range.start, range.end, static_cast<uint32_t>(i), 0});
    }
    if (i % kTrimStep == kTrimStep - 1) dwarf_.trim();
  }
  dwarf_.trim();
  std::stable_sort(index_.begin(), index_.end(),
                   [](const UnitRange& a, const UnitRange& b) { return a.start < b.start; });
  uint64_t end = 0;
  for (const auto& range : index_) max_end_.push_back(end = std::max(end, range.end));
  return index_;
}

uint32_t DebugInfo::unit_of(uint64_t address) {
  const auto& index = unit_ranges();
  auto it =
      std::upper_bound(index.begin(), index.end(), address,
                       [](uint64_t value, const UnitRange& range) { return value < range.start; });
  auto at = static_cast<size_t>(it - index.begin());
  for (int i = 0; i < kMaxOverlaps && at > 0; ++i) {
    --at;
    if (max_end_[at] <= address) break;
    if (address < index[at].end) return index[at].unit;
  }
  return kNoUnit;
}

void DebugInfo::find(uint64_t address, bool inlines, std::vector<model::Location>& out) {
  uint32_t unit = unit_of(address);
  if (unit == kNoUnit) return;
  auto [it, fresh] = tables_.try_emplace(unit);
  if (fresh) it->second = build(unit);
  it->second.find(address, inlines, out);
}

UnitTable DebugInfo::build(uint32_t index) {
  DwarfUnit* unit = dwarf_.unit(index);
  if (unit == nullptr) return {};
  if (!alt_looked_for_) {
    alt_looked_for_ = true;
    FoundFile alt = files_.find_alt(dwarf_.elf(), path_);
    if (alt.file) dwarf_.set_alt(std::make_unique<DwarfFile>(std::move(alt.file), false));
  }
  auto keep = [this](uint64_t address) { return is_code(address); };
  bool missing = false;
  std::unique_ptr<DwarfUnit> split = split_part(*unit, missing);
  UnitTable table = build_unit_table(split ? *split : *unit, *unit, keep);
  table.complete = !missing;
  dwarf_.trim();
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
