#include "symbol/dwarf/function_name.h"

#include <algorithm>

#include <dwarf.h>

#include "symbol/dwarf/dwarf_file.h"

namespace assay::symbol {
namespace {

constexpr int kMaxReferences = 12;
constexpr size_t kMaxDepth = 1024;
constexpr size_t kMaxScopeBytes = 4096;
constexpr size_t kMaxScopesBytes = 32 << 20;

struct DiePlace {
  DwarfUnit* unit = nullptr;
  uint64_t offset = 0;  // in the unit
};

// Where a reference leads; unit null: nowhere.
DiePlace follow(DwarfUnit& from, const AttrValue& reference) {
  DiePlace out;
  uint64_t target = reference.value;
  switch (reference.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      return {&from, target};
    case DW_FORM_ref_addr:
      out.unit = from.file().unit_at(target);
      break;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      if (DwarfFile* alt = from.file().alt()) out.unit = alt->unit_at(target);
      break;
    default:
      break;
  }
  if (out.unit != nullptr) out.offset = target - out.unit->header().offset;
  return out;
}

bool read_die(const DiePlace& place, DieInfo& out) {
  ByteReader cursor = place.unit->cursor(place.offset);
  const Abbrev* abbrev = place.unit->abbrevs().find(cursor.uleb());
  if (abbrev == nullptr || !cursor.ok()) return false;
  place.unit->read(cursor, *abbrev, out);
  return cursor.ok();
}

struct ScopeEntry {
  bool is_scope = false;         // its name goes before those of its children
  bool is_nameable = false;      // a function that needs its scope to be named
  bool may_hold_scopes = false;  // its children are worth a look
  std::string_view name;
  AttrValue sibling;
};

ScopeEntry read_scope_entry(DwarfUnit& unit, ByteReader& cursor, const Abbrev& abbrev) {
  ScopeEntry out;
  DieInfo die;
  switch (abbrev.tag) {
    case DW_TAG_subprogram: {
      unit.read(cursor, abbrev, die);
      bool is_copy =
          die.origin || die.specification;  // what stands in copies stands in the original
      out.is_scope = out.may_hold_scopes = !die.origin;
      out.is_nameable = !is_copy && !die.linkage_name;
      break;
    }
    case DW_TAG_namespace:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
    case DW_TAG_module:
      unit.read(cursor, abbrev, die);
      out.is_scope = out.may_hold_scopes = true;
      break;
    default:
      out.sibling = unit.read_sibling(cursor, abbrev);
      out.may_hold_scopes = abbrev.tag == DW_TAG_lexical_block ||
                            abbrev.tag == DW_TAG_compile_unit || abbrev.tag == DW_TAG_partial_unit;
      return out;
  }
  out.sibling = die.sibling;
  if (out.is_scope) out.name = unit.text(die.name);
  if (out.name.empty())
    out.name = abbrev.tag == DW_TAG_namespace ? "(anonymous namespace)" : "{unnamed}";
  return out;
}

}  // namespace

FunctionName FunctionNamer::name_of(DwarfUnit& unit, uint64_t die_offset, const DieInfo& first) {
  FunctionName out;
  std::string plain;
  DiePlace plain_at;
  DiePlace place{&unit, die_offset};
  DieInfo die = first;
  for (int hop = 0; hop < kMaxReferences; ++hop) {
    if (out.declared_line == 0 && die.decl_line) {
      out.declared_line =
          static_cast<uint32_t>(std::min<uint64_t>(die.decl_line.value, UINT32_MAX));
    }
    std::string_view linkage = place.unit->text(die.linkage_name);
    if (!linkage.empty()) {
      out.text = linkage;
      out.is_linkage_name = true;
      return out;
    }
    if (plain.empty()) plain = place.unit->text(die.name);
    plain_at = place;  // the last in the chain is the declaration, which stands in its scope
    const AttrValue& next = die.origin ? die.origin : die.specification;
    if (!next) break;
    place = follow(*place.unit, next);
    die = {};
    if (place.unit == nullptr || !read_die(place, die)) break;
  }
  out.text = std::move(plain);
  if (out.text.empty() || plain_at.unit == nullptr) return out;
  const Scopes& scopes = scopes_of(*plain_at.unit);
  if (auto it = scopes.find(plain_at.offset); it != scopes.end()) out.text = it->second + out.text;
  return out;
}

const FunctionNamer::Scopes& FunctionNamer::scopes_of(DwarfUnit& unit) {
  auto [slot, fresh] = scopes_.try_emplace(&unit);
  Scopes& scopes = slot->second;
  if (!fresh) return scopes;
  // C has no scopes, and the names of Go carry theirs.
  uint64_t language = unit.root().language.value;
  if (language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 ||
      language == DW_LANG_C11 || language == DW_LANG_Go || language == DW_LANG_Mips_Assembler) {
    return scopes;
  }
  const char* separator = language == DW_LANG_D ? "." : "::";
  ByteReader cursor = unit.cursor(unit.header().first_die - unit.header().offset);
  std::vector<size_t> levels;  // lengths of the scope outside each open entry
  std::string scope;
  size_t bytes = 0;
  while (!cursor.at_end() && bytes < kMaxScopesBytes && levels.size() < kMaxDepth) {
    uint64_t die_offset = cursor.offset();
    uint64_t code = cursor.uleb();
    if (!cursor.ok()) break;
    if (code == 0) {
      if (levels.empty()) break;
      scope.resize(levels.back());
      levels.pop_back();
      if (levels.empty()) break;
      continue;
    }
    const Abbrev* abbrev = unit.abbrevs().find(code);
    if (abbrev == nullptr) break;
    ScopeEntry entry = read_scope_entry(unit, cursor, *abbrev);
    if (!cursor.ok()) break;
    if (entry.is_nameable && !scope.empty()) {
      scopes.emplace(die_offset, scope);
      bytes += scope.size() + 64;
    }
    if (!abbrev->has_children) continue;
    if (!entry.may_hold_scopes && entry.sibling && entry.sibling.value > cursor.offset()) {
      cursor.seek(entry.sibling.value);
      continue;
    }
    levels.push_back(scope.size());
    if (entry.is_scope && scope.size() < kMaxScopeBytes) scope.append(entry.name).append(separator);
  }
  return scopes;
}

}  // namespace assay::symbol
