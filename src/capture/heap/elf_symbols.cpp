#include "capture/heap/elf_symbols.h"

#include <algorithm>

#include "elf/elf_file.h"

namespace assay::capture {
namespace {

constexpr uint64_t kMaxSymbols = 2'000'000;
constexpr uint64_t kMaxInterpreter = 4096;
constexpr uint64_t kMaxNameBytes = 256;  // longer than every name that is asked for

void read_symbols(elf::ElfFile& file, const elf::Section& table,
                  const std::vector<std::string>& wanted, ElfFacts& facts) {
  file.for_each_symbol(
      table, kMaxSymbols, [&](const Elf64_Sym& symbol, const elf::SectionBytes& names) {
        int type = ELF64_ST_TYPE(symbol.st_info);
        if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) return;
        std::string_view name = names.view(symbol.st_name, kMaxNameBytes);
        name = name.substr(0, name.find('\0'));
        if (std::ranges::find(wanted, name) != wanted.end())
          facts.functions.try_emplace(std::string(name), symbol.st_value);
      });
}

}  // namespace

Result<ElfFacts> read_elf_facts(int fd, const std::vector<std::string>& wanted) {
  auto opened = elf::ElfFile::open(fd, elf::Classes::both);
  if (!opened) return fail("it is no ELF file");
  elf::ElfFile& file = **opened;
  ElfFacts facts;
  facts.is_64_bit = file.is_64_bit();
  facts.machine = file.machine();
  facts.is_program = file.entry() != 0;
  bool first = true;
  for (const elf::Segment& segment : file.segments()) {
    if (segment.type == PT_INTERP) {
      auto text = file.source().view(segment.offset, std::min(segment.file_size, kMaxInterpreter));
      facts.interpreter = text.substr(0, text.find('\0'));
    }
    if (segment.type == PT_LOAD && std::exchange(first, false))
      facts.first_vaddr = segment.address - segment.offset;
  }
  for (const elf::Section& section : file.sections()) {
    if (section.type == SHT_DYNSYM || section.type == SHT_SYMTAB)
      read_symbols(file, section, wanted, facts);
  }
  return facts;
}

}  // namespace assay::capture
