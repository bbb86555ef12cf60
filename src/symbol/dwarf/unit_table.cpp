#include "symbol/dwarf/unit_table.h"

#include <algorithm>

#include "symbol/demangle/demangle.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxInlineDepth = 256;
// Functions overlap only in damaged files and where a linker folded equal functions.
constexpr int kMaxOverlaps = 64;

}  // namespace

bool UnitTable::check() const {
  auto text_ok = [&](const TextRef& ref) {
    return ref.at <= pool.size() && ref.size <= pool.size() - ref.at;
  };
  for (const auto& name : names) {
    if (!text_ok(name.text)) return false;
  }
  for (const auto& file : files) {
    if (!text_ok(file)) return false;
  }
  for (const auto& row : rows) {
    if (row.file != LineRow::kEnd && row.file >= files.size()) return false;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FunctionNode& node = nodes[i];
    if (node.name >= names.size() || node.call_file >= files.size()) return false;
    if (node.first_range > ranges.size() || node.range_count > ranges.size() - node.first_range)
      return false;
    if (node.subtree_end <= i || node.subtree_end > nodes.size()) return false;
  }
  return std::all_of(spans.begin(), spans.end(),
                     [&](const FunctionSpan& span) { return span.node < nodes.size(); });
}

const LineRow* UnitTable::find_row(uint64_t address) const {
  auto it =
      std::upper_bound(rows.begin(), rows.end(), address,
                       [](uint64_t value, const LineRow& row) { return value < row.address; });
  if (it == rows.begin()) return nullptr;
  --it;
  return it->file == LineRow::kEnd ? nullptr : &*it;
}

const FunctionSpan* UnitTable::find_span(uint64_t address) const {
  auto it =
      std::upper_bound(spans.begin(), spans.end(), address,
                       [](uint64_t value, const FunctionSpan& span) { return value < span.start; });
  for (int i = 0; i < kMaxOverlaps && it != spans.begin(); ++i) {
    --it;
    if (address < it->end) return &*it;
  }
  return nullptr;
}

bool UnitTable::covers(const FunctionNode& node, uint64_t address) const {
  const PcRange* range = ranges.data() + node.first_range;
  return std::any_of(range, range + node.range_count,
                     [&](const PcRange& r) { return r.start <= address && address < r.end; });
}

void UnitTable::set_name(const FunctionNode& node, model::Location& out) {
  const NameRef& name = names[node.name];
  out.function_line = node.declared_line;
  out.inlined = node.inlined;
  if (!name.is_linkage_name) {
    out.function = text(name.text);
    return;
  }
  auto [it, fresh] = demangled_.try_emplace(node.name);
  if (fresh) it->second = demangle(text(name.text));
  out.function = it->second;
  if (out.function != text(name.text)) out.system_name = text(name.text);
}

void UnitTable::find(uint64_t address, bool inlines, std::vector<model::Location>& out) {
  std::vector<uint32_t> chain;  // outermost first
  if (const FunctionSpan* span = find_span(address)) {
    uint32_t at = span->node;
    chain.push_back(at);
    uint32_t end = nodes[at].subtree_end;
    // The first child that holds the address, then its first child, …, as the debug information
    // nests.
    for (uint32_t child = at + 1; child < end && chain.size() < kMaxInlineDepth;) {
      if (covers(nodes[child], address)) {
        chain.push_back(child);
        end = nodes[child].subtree_end;
        ++child;
      } else {
        child = nodes[child].subtree_end;
      }
    }
  }
  const LineRow* row = find_row(address);
  if (chain.empty() && row == nullptr) return;
  model::Location here;
  if (row != nullptr) {
    here.file = text(files[row->file]);
    here.line = row->line;
  }
  if (chain.empty()) {
    out.push_back(std::move(here));
    return;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const FunctionNode& node = nodes[chain[i]];
    if (inlines || i == 0) {
      set_name(node, here);
      out.push_back(std::move(here));
    }
    here = {};
    here.file = text(files[node.call_file]);
    here.line = node.call_line;
  }
}

}  // namespace assay::symbol
