// The names of PLT stubs. A stub jumps through a slot; the relocation of that slot names the
// function.
#include <map>

#include <elf.h>

#include "base/byte_reader.h"
#include "symbol/elf/symbol_table.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kStubBytes = 16;
constexpr uint64_t kMaxPltBytes = 16 << 20;

// Slot address → symbol name.
std::map<uint64_t, std::string_view> slot_names(ElfFile& file) {
  std::map<uint64_t, std::string_view> out;
  const auto& sections = file.sections();
  const elf::Section* symbols = file.find(".dynsym");
  if (symbols == nullptr || symbols->link >= sections.size()) return out;
  SectionBytes table = file.bytes(*symbols);
  SectionBytes names = file.bytes(sections[symbols->link]);
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    SectionBytes relocations = file.bytes(name);
    ByteReader cursor(relocations.all());
    while (cursor.left() >= sizeof(Elf64_Rela)) {
      auto raw = cursor.fixed<Elf64_Rela>();
      uint64_t type = ELF64_R_TYPE(raw.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      ByteReader entry(table.view(ELF64_R_SYM(raw.r_info) * sizeof(Elf64_Sym), sizeof(Elf64_Sym)));
      auto symbol = entry.fixed<Elf64_Sym>();
      if (entry.ok() && symbol.st_name != 0) out[raw.r_offset] = names.text(symbol.st_name);
    }
  }
  return out;
}

// The slot that a stub at `address` jumps through: [endbr64] [bnd] jmp *slot(%rip). 0: none.
uint64_t stub_slot(std::string_view stub, uint64_t address) {
  size_t at = stub.starts_with("\xf3\x0f\x1e\xfa") ? 4 : 0;
  if (at < stub.size() && stub[at] == '\xf2') ++at;
  if (!stub.substr(at).starts_with("\xff\x25")) return 0;
  ByteReader cursor(stub, at + 2);
  auto displacement = cursor.fixed<int32_t>();
  return cursor.ok() ? address + cursor.offset() + static_cast<int64_t>(displacement) : 0;
}

}  // namespace

void add_plt_symbols(ElfFile& file, SymbolTable& table, std::vector<std::string>& names) {
  std::map<uint64_t, std::string_view> slots;
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const auto& section : file.sections()) {
    if (!section.name.starts_with(".plt") || !section.executable() || section.size > kMaxPltBytes)
      continue;
    if (slots.empty()) slots = slot_names(file);
    uint64_t step = section.name == ".plt.got" && section.entry_size == 8 ? 8 : kStubBytes;
    std::string_view bytes = file.bytes(section).all();
    for (uint64_t at = 0; at + step <= bytes.size(); at += step) {
      auto it = slots.find(stub_slot(bytes.substr(at, step), section.address + at));
      if (it == slots.end()) continue;
      found.emplace_back(section.address + at, std::string(it->second) + "@plt");
    }
  }
  // Views are taken only when the strings no longer move.
  size_t first = names.size();
  names.reserve(first + found.size());
  for (auto& [address, name] : found) {
    names.push_back(std::move(name));
    table.add(address, kStubBytes, names.back());
  }
}

}  // namespace assay::symbol
