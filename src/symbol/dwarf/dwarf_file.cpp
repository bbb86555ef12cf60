#include "symbol/dwarf/dwarf_file.h"

#include <algorithm>

#include <dwarf.h>

namespace assay::symbol {
namespace {

constexpr size_t kMaxUnits = 1 << 21;
constexpr uint64_t kMaxAbbrevBytes = 4 << 20;
constexpr size_t kMaxAbbrevTables = 128;
constexpr uint64_t kScanWindowBytes = 32 << 20;

DwarfSections find_sections(ElfFile& file, bool split) {
  auto get = [&](const char* name) {
    return file.bytes(std::string(name) + (split ? ".dwo" : ""));
  };
  std::string suffix = split ? ".dwo" : "";
  file.prepare({".debug_info" + suffix, ".debug_abbrev" + suffix, ".debug_str" + suffix,
                ".debug_line" + suffix, ".debug_rnglists" + suffix, ".debug_ranges" + suffix,
                ".debug_line_str" + suffix});
  DwarfSections out;
  out.info = get(".debug_info");
  out.abbrev = get(".debug_abbrev");
  out.str = get(".debug_str");
  out.line = get(".debug_line");
  out.str_offsets = get(".debug_str_offsets");
  out.rnglists = get(".debug_rnglists");
  if (split) return out;
  out.line_str = get(".debug_line_str");
  out.ranges = get(".debug_ranges");
  out.addr = get(".debug_addr");
  return out;
}

}  // namespace

DwarfFile::DwarfFile(std::unique_ptr<ElfFile> owned, bool split)
    : owned_(std::move(owned)),
      file_(*owned_),
      sections_(find_sections(file_, split)),
      split_(split) {}

DwarfFile::DwarfFile(ElfFile& file, bool split)
    : file_(file), sections_(find_sections(file, split)), split_(split) {}

const std::vector<UnitHeader>& DwarfFile::units() {
  if (scanned_) return units_;
  scanned_ = true;
  uint64_t released = 0;
  for (uint64_t at = 0; at < sections_.info.size && units_.size() < kMaxUnits;) {
    auto header = read_unit_header(sections_.info, at);
    if (!header || header->end <= at) break;
    units_.push_back(*header);
    at = header->end;
    if (at - released > kScanWindowBytes) {
      sections_.info.source->release(sections_.info.offset + released, at - released);
      released = at;
    }
  }
  opened_.resize(units_.size());
  return units_;
}

std::shared_ptr<const AbbrevTable> DwarfFile::abbrevs(const SectionBytes& section,
                                                      uint64_t offset) {
  auto& slot = abbrevs_[section.offset + offset];
  if (!slot) {
    // The end of a table is not known beforehand: most are small.
    slot = std::make_shared<AbbrevTable>(
        section.view(offset, std::min(kMaxAbbrevBytes, abbrev_budget_)));
    abbrev_budget_ -= std::min(abbrev_budget_, slot->bytes_read());
  }
  return slot;
}

DwarfUnit* DwarfFile::unit(size_t index) {
  if (index >= units().size()) return nullptr;
  auto& slot = opened_[index];
  if (!slot) {
    const UnitHeader& header = units_[index];
    if (header.version < 2 || header.version > 5) return nullptr;
    slot = std::make_unique<DwarfUnit>(*this, sections_, header, nullptr);
  }
  return slot.get();
}

DwarfUnit* DwarfFile::unit_at(uint64_t offset) {
  const auto& all = units();
  auto it = std::upper_bound(
      all.begin(), all.end(), offset,
      [](uint64_t value, const UnitHeader& header) { return value < header.offset; });
  if (it == all.begin()) return nullptr;
  --it;
  return offset < it->end ? unit(static_cast<size_t>(it - all.begin())) : nullptr;
}

std::unique_ptr<DwarfUnit> DwarfFile::split_unit(uint64_t dwo_id, const DwarfUnit& skeleton) {
  DwarfSections sections = sections_;
  bool package = file_.find(".debug_cu_index") != nullptr;
  if (package && !narrow_to_package_unit(dwo_id, sections)) return nullptr;
  for (uint64_t at = 0; at < sections.info.size;) {
    auto header = read_unit_header(sections.info, at);
    if (!header || header->end <= at) return nullptr;
    at = header->end;
    if (header->version < 4 || header->version > 5 || header->type == DW_UT_split_type) continue;
    auto unit = std::make_unique<DwarfUnit>(*this, sections, *header, &skeleton);
    uint64_t id = header->version >= 5 ? header->dwo_id : unit->root().dwo_id.value;
    if (package || id == dwo_id) return unit;
  }
  return nullptr;
}

// .debug_cu_index: a hash table from id to row, then for each row the offset and size of its part
// of each section (DWARF 5, 7.3.5; GNU's version 2 differs in the numbers of the sections).
bool DwarfFile::narrow_to_package_unit(uint64_t dwo_id, DwarfSections& sections) {
  SectionBytes index = file_.bytes(".debug_cu_index");
  ByteReader cursor(index.all());
  uint32_t version = cursor.u32() & 0xffff;
  uint64_t columns = cursor.u32();
  uint64_t rows = cursor.u32();
  uint64_t slots = cursor.u32();
  if (!cursor.ok() || (version != 2 && version != 5) || columns > 64 || slots > index.size / 12)
    return false;
  uint64_t ids = cursor.offset();
  uint64_t row = 0;
  for (uint64_t slot = 0; slot < slots && row == 0; ++slot) {
    ByteReader id(index.all(), ids + slot * 8);
    if (id.u64() != dwo_id) continue;
    ByteReader number(index.all(), ids + slots * 8 + slot * 4);
    row = number.u32();
  }
  if (row == 0 || row > rows) return false;
  uint64_t names = ids + slots * 12;
  uint64_t offsets = names + columns * 4 + (row - 1) * columns * 4;
  uint64_t sizes = offsets + rows * columns * 4;
  for (uint64_t column = 0; column < columns; ++column) {
    uint32_t name = ByteReader(index.all(), names + column * 4).u32();
    uint64_t offset = ByteReader(index.all(), offsets + column * 4).u32();
    uint64_t size = ByteReader(index.all(), sizes + column * 4).u32();
    SectionBytes* part = nullptr;
    if (name == 1) part = &sections.info;
    if (name == 3) part = &sections.abbrev;
    if (name == 4) part = &sections.line;
    if (name == 6) part = &sections.str_offsets;
    if (name == 8 && version == 5) part = &sections.rnglists;
    if (part == nullptr || offset > part->size || size > part->size - offset) continue;
    part->offset += offset;
    part->size = size;
  }
  return true;
}

void DwarfFile::trim() {
  for (const SectionBytes* section :
       {&sections_.info, &sections_.str, &sections_.line, &sections_.ranges, &sections_.rnglists,
        &sections_.str_offsets}) {
    if (*section && section->size > kScanWindowBytes)
      section->source->release(section->offset, section->size);
  }
  if (abbrevs_.size() > kMaxAbbrevTables) {
    abbrevs_.clear();
    for (auto& unit : opened_) {
      if (unit) unit->forget_abbrevs();
    }
  }
  if (alt_) alt_->trim();
}

}  // namespace assay::symbol
