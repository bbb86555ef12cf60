#include "capture/heap/elf_symbols.h"

#include <algorithm>
#include <array>
#include <memory>

#include <gelf.h>
#include <unistd.h>

namespace assay::capture {
namespace {

constexpr size_t kMaxSymbols = 2'000'000;
constexpr size_t kMaxInterpreter = 4096;
constexpr uint64_t kMaxSectionBytes = uint64_t{256} << 20;  // of symbols, and of their names

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

std::string read_text(int fd, uint64_t offset, uint64_t size) {
  std::string text(std::min<uint64_t>(size, kMaxInterpreter), '\0');
  ssize_t got = pread(fd, text.data(), text.size(), static_cast<off_t>(offset));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text.substr(0, text.find('\0'));
}

void read_symbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                  const std::vector<std::string>& wanted, ElfFacts& facts) {
  GElf_Shdr names;
  Elf_Scn* names_section = elf_getscn(elf, header.sh_link);
  if (header.sh_size > kMaxSectionBytes || names_section == nullptr ||
      gelf_getshdr(names_section, &names) == nullptr || names.sh_size > kMaxSectionBytes)
    return;
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  size_t count = std::min<size_t>(header.sh_size / header.sh_entsize, kMaxSymbols);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    int type = GELF_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr) continue;
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      facts.functions.try_emplace(name, symbol.st_value);
  }
}

}  // namespace

Result<ElfFacts> read_elf_facts(int fd, const std::vector<std::string>& wanted) {
  elf_version(EV_CURRENT);
  // Read, not mapped: who may cut the file short could end us with SIGBUS.
  std::unique_ptr<Elf, EndElf> elf(elf_begin(fd, ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr)
    return fail("it is no ELF file");
  ElfFacts facts;
  facts.is_64_bit = gelf_getclass(elf.get()) == ELFCLASS64;
  facts.machine = header.e_machine;
  facts.is_program = header.e_entry != 0;
  size_t segments = 0;
  elf_getphdrnum(elf.get(), &segments);
  bool first = true;
  for (size_t i = 0; i < std::min<size_t>(segments, 1024); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type == PT_INTERP)
      facts.interpreter = read_text(fd, segment.p_offset, segment.p_filesz);
    if (segment.p_type == PT_LOAD && std::exchange(first, false))
      facts.first_vaddr = segment.p_vaddr - segment.p_offset;
  }
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr section_header;
    if (gelf_getshdr(section, &section_header) == nullptr) continue;
    if (section_header.sh_type == SHT_DYNSYM || section_header.sh_type == SHT_SYMTAB)
      read_symbols(elf.get(), section, section_header, wanted, facts);
  }
  return facts;
}

}  // namespace assay::capture
