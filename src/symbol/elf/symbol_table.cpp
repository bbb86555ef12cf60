#include "symbol/elf/symbol_table.h"

#include <algorithm>
#include <tuple>

#include <elf.h>

#include "base/byte_reader.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kMaxSymbols = 64 << 20;

std::string_view without_version(std::string_view name) {
  size_t at = name.find('@');
  return at == std::string_view::npos || at == 0 ? name : name.substr(0, at);
}

size_t leading_underscores(std::string_view name) {
  // Mangled names (_Z, _R, _D) are names, not reserved aliases.
  if (name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D")) return 0;
  return std::min(name.find_first_not_of('_'), name.size());
}

bool wanted_type(SymbolTable::Kind kind, unsigned type) {
  if (kind == SymbolTable::Kind::data) return type == STT_OBJECT;
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

}  // namespace

bool SymbolTable::better(const Candidate& a, const Candidate& b) {
  return std::tuple(a.rank, leading_underscores(a.name), a.name.size(), a.name) <
         std::tuple(b.rank, leading_underscores(b.name), b.name.size(), b.name);
}

bool SymbolTable::add(ElfFile& file) {
  size_t before = candidates_.size();
  for (const auto& section : file.sections()) {
    if (section.type == SHT_SYMTAB || section.type == SHT_DYNSYM) add_section(file, section);
  }
  return candidates_.size() > before;
}

void SymbolTable::add_section(ElfFile& file, const elf::Section& table) {
  const auto& sections = file.sections();
  if (table.link >= sections.size() || table.entry_size != sizeof(Elf64_Sym)) return;
  SectionBytes names = file.bytes(sections[table.link]);
  SectionBytes bytes = file.bytes(table);
  ByteReader cursor(bytes.all());
  uint64_t count = std::min<uint64_t>(bytes.size / sizeof(Elf64_Sym), kMaxSymbols);
  for (uint64_t i = 0; i < count; ++i) {
    auto raw = cursor.fixed<Elf64_Sym>();
    unsigned type = ELF64_ST_TYPE(raw.st_info);
    if (!wanted_type(kind_, type) || raw.st_shndx == SHN_UNDEF || raw.st_name == 0) continue;
    if (raw.st_shndx >= sections.size()) continue;  // absolute and common symbols are no code
    const elf::Section& home = sections[raw.st_shndx];
    if (kind_ == Kind::functions && !home.executable()) continue;
    if (raw.st_value < home.address || raw.st_value - home.address >= home.size) continue;
    std::string_view name = without_version(names.text(raw.st_name));
    if (name.empty() || name.starts_with(".L") || name.starts_with("$")) continue;
    bool local = ELF64_ST_BIND(raw.st_info) == STB_LOCAL;
    auto rank =
        static_cast<uint8_t>((type == STT_NOTYPE ? 4 : 0) + (raw.st_size == 0 ? 2 : 0) + local);
    candidates_.push_back({raw.st_value, raw.st_size, home.address + home.size, name, rank});
  }
  file.source().release(table.offset, table.size);
}

void SymbolTable::add(uint64_t start, uint64_t size, std::string_view name) {
  candidates_.push_back({start, size, start + size, name, 5});
}

// A sweep over the starts with a stack of enclosing symbols: an inner symbol cuts its piece out of
// the outer one, which goes on after it. Symbols without size only fill what no sized symbol
// covers.
void SymbolTable::finish() {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.start != b.start) return a.start < b.start;
    if ((a.size == 0) != (b.size == 0)) return b.size == 0;
    if (a.size != b.size) return a.size > b.size;
    return better(a, b);
  });
  struct Open {
    uint64_t end;
    std::string_view name;
  };
  std::vector<Open> open;
  flat_.clear();
  uint64_t at = 0;  // everything before is in flat_
  auto emit_until = [&](uint64_t limit) {
    while (!open.empty() && at < limit) {
      uint64_t end = std::min(limit, open.back().end);
      if (end > at) flat_.push_back({at, end, open.back().name});
      at = std::max(at, end);
      if (open.back().end <= at) open.pop_back();
    }
    at = std::max(at, limit);
  };
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& c = candidates_[i];
    emit_until(c.start);
    while (!open.empty() && open.back().end <= c.start) open.pop_back();
    if (c.size == 0) {
      if (!open.empty()) continue;
      auto next = std::find_if(candidates_.begin() + static_cast<ptrdiff_t>(i), candidates_.end(),
                               [&](const Candidate& other) { return other.start > c.start; });
      uint64_t end = next == candidates_.end() ? c.limit : std::min(c.limit, next->start);
      if (end > c.start) open.push_back({end, c.name});
      continue;
    }
    bool alias = i > 0 && candidates_[i - 1].start == c.start && candidates_[i - 1].size == c.size;
    if (alias) continue;
    uint64_t end = c.start + std::min(c.size, UINT64_MAX - c.start);
    if (!open.empty()) end = std::min(end, open.back().end);
    open.push_back({end, c.name});
  }
  emit_until(UINT64_MAX);
  candidates_.clear();
  candidates_.shrink_to_fit();
}

const Symbol* SymbolTable::find(uint64_t address) const {
  auto it =
      std::upper_bound(flat_.begin(), flat_.end(), address,
                       [](uint64_t value, const Symbol& symbol) { return value < symbol.start; });
  if (it == flat_.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

}  // namespace assay::symbol
