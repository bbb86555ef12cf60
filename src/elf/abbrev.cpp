#include "elf/abbrev.h"

#include <algorithm>

#include <dwarf.h>

#include "base/byte_reader.h"

namespace assay::elf {
namespace {

constexpr size_t kMaxAbbrevs = 1 << 20;
constexpr size_t kMaxAttrs = 4 << 20;
constexpr size_t kMaxAttrsPerAbbrev = 512;

}  // namespace

AbbrevTable::AbbrevTable(std::string_view bytes, uint64_t last_code) {
  ByteReader cursor(bytes);
  while (abbrevs_.size() < kMaxAbbrevs && attrs_.size() < kMaxAttrs && read_one(cursor)) {
    if (abbrevs_.back().code == last_code) break;
  }
  bytes_read_ = cursor.offset();
  auto by_code = [](const Abbrev& a, const Abbrev& b) { return a.code < b.code; };
  if (!std::is_sorted(abbrevs_.begin(), abbrevs_.end(), by_code)) {
    std::stable_sort(abbrevs_.begin(), abbrevs_.end(), by_code);
  }
}

bool AbbrevTable::read_one(ByteReader& cursor) {
  Abbrev abbrev;
  abbrev.code = cursor.uleb();
  if (!cursor.ok() || abbrev.code == 0) return false;
  abbrev.tag = static_cast<uint16_t>(std::min<uint64_t>(cursor.uleb(), UINT16_MAX));
  abbrev.has_children = cursor.u8() != 0;
  abbrev.first = static_cast<uint32_t>(attrs_.size());
  for (;;) {
    uint64_t name = cursor.uleb();
    uint64_t form = cursor.uleb();
    int64_t implicit = form == DW_FORM_implicit_const ? cursor.sleb() : 0;
    if (!cursor.ok()) return false;
    if (name == 0 && form == 0) break;
    if (name > UINT16_MAX || form > UINT16_MAX || abbrev.count >= kMaxAttrsPerAbbrev) return false;
    attrs_.push_back({static_cast<uint16_t>(name), static_cast<uint16_t>(form), implicit});
    ++abbrev.count;
  }
  abbrevs_.push_back(abbrev);
  return true;
}

const Abbrev* AbbrevTable::find(uint64_t code) const {
  // Compilers number from 1 without gaps.
  if (code - 1 < abbrevs_.size() && abbrevs_[code - 1].code == code) return &abbrevs_[code - 1];
  auto it = std::lower_bound(abbrevs_.begin(), abbrevs_.end(), code,
                             [](const Abbrev& a, uint64_t value) { return a.code < value; });
  return it != abbrevs_.end() && it->code == code ? &*it : nullptr;
}

}  // namespace assay::elf
