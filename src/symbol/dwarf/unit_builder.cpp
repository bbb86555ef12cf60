// One pass over a unit's entries makes its UnitTable.
#include <algorithm>
#include <unordered_map>

#include <dwarf.h>

#include "symbol/dwarf/dwarf_file.h"
#include "symbol/dwarf/function_name.h"
#include "symbol/dwarf/unit_table.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxRangesPerUnit = 4 << 20;
constexpr size_t kMaxRangesPerEntry = 64 << 10;
constexpr size_t kMaxNodes = 4 << 20;
constexpr size_t kMaxPoolBytes = 64 << 20;
constexpr size_t kMaxDepth = 4096;

class Builder {
 public:
  Builder(DwarfUnit& unit, DwarfUnit& lines, const std::function<bool(uint64_t)>& keep)
      : unit_(unit), lines_(lines), keep_(keep) {}

  UnitTable build() {
    table_.files.push_back({});  // 0: unknown
    read_lines();
    walk();
    auto before = [](const FunctionSpan& a, const FunctionSpan& b) {
      // Searched from the back: of equal functions, which a linker folded, the first declared is
      // last.
      if (a.start != b.start) return a.start < b.start;
      return a.end != b.end ? a.end > b.end : a.node > b.node;
    };
    std::sort(table_.spans.begin(), table_.spans.end(), before);
    return std::move(table_);
  }

 private:
  static constexpr uint32_t kNoFunction = UINT32_MAX;   // outside any function
  static constexpr uint32_t kIgnored = UINT32_MAX - 1;  // inside something without code

  TextRef add_text(std::string_view text) {
    if (table_.pool.size() + text.size() > kMaxPoolBytes) return {};
    TextRef ref{static_cast<uint32_t>(table_.pool.size()), static_cast<uint32_t>(text.size())};
    table_.pool += text;
    return ref;
  }
  uint32_t add_file(const std::string& path) {
    if (path.empty()) return 0;
    auto [it, fresh] = file_index_.try_emplace(path, static_cast<uint32_t>(table_.files.size()));
    if (fresh) table_.files.push_back(add_text(path));
    return it->second;
  }

  void read_lines() {
    if (lines_.root().stmt_list) {
      LineProgram program = LineProgram::read(lines_.sections(), lines_.root().stmt_list.value,
                                              lines_.comp_dir(), keep_, true);
      set_files(program.files);
      table_.rows = std::move(program.rows);
      for (auto& row : table_.rows) {
        if (row.file != LineRow::kEnd) row.file = row.file < files_.size() ? files_[row.file] : 0;
      }
    }
    if (&unit_ == &lines_ || !unit_.sections().line) return;
    // A split unit numbers the files of its calls by a table of its own.
    uint64_t offset = unit_.root().stmt_list ? unit_.root().stmt_list.value : 0;
    LineProgram own = LineProgram::read(unit_.sections(), offset, unit_.comp_dir(), keep_, false);
    if (!own.files.empty()) set_files(own.files);
  }
  void set_files(const std::vector<std::string>& files) {
    files_.clear();
    for (const auto& file : files) files_.push_back(add_file(file));
  }

  void walk();
  uint32_t enter(ByteReader& cursor, const Abbrev& abbrev, uint64_t die_offset, uint32_t parent,
                 AttrValue& sibling);
  uint32_t add_function(const DieInfo& die, uint64_t die_offset, bool inlined);
  uint32_t name_index(uint64_t die_offset, const DieInfo& die, uint32_t& declared_line);

  DwarfUnit& unit_;
  DwarfUnit& lines_;
  const std::function<bool(uint64_t)>& keep_;
  UnitTable table_;
  std::vector<uint32_t> files_;  // by the unit's own numbers, to table_.files
  std::unordered_map<std::string, uint32_t> file_index_;
  struct KnownName {
    uint32_t name, declared_line;
  };
  std::unordered_map<uint64_t, KnownName> known_names_;  // by what an entry's origin refers to
  FunctionNamer namer_;
};

void Builder::walk() {
  ByteReader cursor = unit_.cursor(unit_.header().first_die - unit_.header().offset);
  struct Level {
    uint32_t context;  // the node that children belong to, kNoFunction or kIgnored
    uint32_t node;     // the node this level closes, or kNoFunction
  };
  std::vector<Level> levels;
  uint32_t context = kNoFunction;
  while (!cursor.at_end() && table_.nodes.size() < kMaxNodes) {
    uint64_t die_offset = cursor.offset();
    uint64_t code = cursor.uleb();
    if (!cursor.ok()) break;
    if (code == 0) {
      if (levels.empty()) break;
      Level level = levels.back();
      levels.pop_back();
      if (level.node < table_.nodes.size()) {
        table_.nodes[level.node].subtree_end = static_cast<uint32_t>(table_.nodes.size());
      }
      context = level.context;
      if (levels.empty()) break;
      continue;
    }
    const Abbrev* abbrev = unit_.abbrevs().find(code);
    if (abbrev == nullptr) break;
    AttrValue sibling;
    size_t nodes_before = table_.nodes.size();
    uint32_t inner = enter(cursor, *abbrev, die_offset, context, sibling);
    if (!cursor.ok()) break;
    bool made_node = table_.nodes.size() > nodes_before;
    if (!abbrev->has_children) continue;
    bool jump = inner == kIgnored && sibling && sibling.value > cursor.offset();
    if (jump) {
      cursor.seek(sibling.value);
      continue;
    }
    if (levels.size() >= kMaxDepth) break;
    levels.push_back({context, made_node ? static_cast<uint32_t>(nodes_before) : kNoFunction});
    context = inner;
  }
  // Nodes left open by damage end with the table.
  for (auto& node : table_.nodes) {
    if (node.subtree_end == 0) node.subtree_end = static_cast<uint32_t>(table_.nodes.size());
  }
}

// Reads one entry's attributes and returns the context of its children.
uint32_t Builder::enter(ByteReader& cursor, const Abbrev& abbrev, uint64_t die_offset,
                        uint32_t parent, AttrValue& sibling) {
  switch (abbrev.tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_entry_point: {
      DieInfo die;
      unit_.read(cursor, abbrev, die);
      sibling = die.sibling;
      bool inlined = abbrev.tag == DW_TAG_inlined_subroutine;
      if (!cursor.ok() || parent == kIgnored || (inlined && parent == kNoFunction)) return kIgnored;
      return add_function(die, die_offset, inlined);
    }
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_compile_unit:
    case DW_TAG_skeleton_unit:
    case DW_TAG_common_block:
      sibling = unit_.read_sibling(cursor, abbrev);
      return parent;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_variant_part:
    case DW_TAG_variant:
      sibling = unit_.read_sibling(cursor, abbrev);
      // Rust and Swift keep methods with code inside types.
      return unit_.is_c_family() || parent == kIgnored ? kIgnored : kNoFunction;
    default:
      sibling = unit_.read_sibling(cursor, abbrev);
      return kIgnored;
  }
}

uint32_t Builder::add_function(const DieInfo& die, uint64_t die_offset, bool inlined) {
  FunctionNode node;
  node.first_range = static_cast<uint32_t>(table_.ranges.size());
  if (table_.ranges.size() < kMaxRangesPerUnit)
    unit_.ranges(die, table_.ranges, kMaxRangesPerEntry);
  if (!inlined) {
    auto first = table_.ranges.begin() + node.first_range;
    table_.ranges.erase(std::remove_if(first, table_.ranges.end(),
                                       [&](const PcRange& r) { return !keep_(r.start); }),
                        table_.ranges.end());
  }
  node.range_count = static_cast<uint32_t>(table_.ranges.size()) - node.first_range;
  if (node.range_count == 0) return kIgnored;
  node.inlined = inlined;
  node.name = name_index(die_offset, die, node.declared_line);
  uint64_t file = die.call_file.value;
  node.call_file = die.call_file && file < files_.size() ? files_[file] : 0;
  node.call_line = static_cast<uint32_t>(std::min<uint64_t>(die.call_line.value, UINT32_MAX));
  auto index = static_cast<uint32_t>(table_.nodes.size());
  node.subtree_end = index + 1;
  table_.nodes.push_back(node);
  if (!inlined) {
    for (uint32_t i = 0; i < node.range_count; ++i) {
      const PcRange& range = table_.ranges[node.first_range + i];
      table_.spans.push_back({range.start, range.end, index, 0});
    }
  }
  return index;
}

uint32_t Builder::name_index(uint64_t die_offset, const DieInfo& die, uint32_t& declared_line) {
  // Copies of one function share the entry they refer to, and so its name.
  bool shares = die.origin && !die.linkage_name && !die.name;
  uint64_t key = shares ? die.origin.value ^ uint64_t { die.origin.form } << 56 : ~die_offset;
  auto [it, fresh] = known_names_.try_emplace(key);
  if (fresh) {
    FunctionName found = namer_.name_of(unit_, die_offset, die);
    it->second = {static_cast<uint32_t>(table_.names.size()), found.declared_line};
    table_.names.push_back({add_text(found.text), found.is_linkage_name});
  }
  declared_line = it->second.declared_line;
  return it->second.name;
}

}  // namespace

UnitTable build_unit_table(DwarfUnit& unit, DwarfUnit& lines,
                           const std::function<bool(uint64_t)>& keep) {
  return Builder(unit, lines, keep).build();
}

}  // namespace assay::symbol
