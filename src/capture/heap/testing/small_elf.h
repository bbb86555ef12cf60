// SmallElf: the bytes of a program or library with chosen headers and functions. For tests only.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>

namespace assay::capture::fake {

struct SmallElf {
  uint16_t machine = EM_X86_64;
  bool is_64_bit = true;
  uint64_t entry = 0x401000;                                // 0: a library
  std::string interpreter = "/lib64/ld-linux-x86-64.so.2";  // empty: linked statically
  uint64_t first_vaddr = 0;
  // Functions by name; address 0: it is only asked for, as a program does of a library's.
  std::vector<std::pair<std::string, uint64_t>> functions = {};

  std::string bytes() const {
    std::string names(1, '\0');
    std::vector<Elf64_Sym> symbols(1);
    for (const auto& [name, address] : functions) {
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<uint32_t>(names.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_shndx = address == 0 ? SHN_UNDEF : 1;
      symbol.st_value = address;
      symbols.push_back(symbol);
      names += name + '\0';
    }
    std::string file(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr), '\0');
    Elf64_Phdr segments[2]{};
    segments[0].p_type = PT_LOAD;
    segments[0].p_vaddr = first_vaddr;
    segments[1].p_type = interpreter.empty() ? PT_NULL : PT_INTERP;
    segments[1].p_offset = file.size();
    segments[1].p_filesz = interpreter.size() + 1;
    file += interpreter + '\0';
    Elf64_Shdr sections[3]{};
    sections[1].sh_type = SHT_DYNSYM;
    sections[1].sh_link = 2;
    sections[1].sh_entsize = sizeof(Elf64_Sym);
    sections[1].sh_offset = file.size();
    sections[1].sh_size = symbols.size() * sizeof(Elf64_Sym);
    file.append(reinterpret_cast<const char*>(symbols.data()), sections[1].sh_size);
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = file.size();
    sections[2].sh_size = names.size();
    file += names;
    segments[0].p_filesz = segments[0].p_memsz = file.size();
    std::memcpy(file.data() + sizeof(Elf64_Ehdr), segments, sizeof segments);
    Elf64_Ehdr header = make_header(file.size());
    std::memcpy(file.data(), &header, sizeof header);
    file.append(reinterpret_cast<const char*>(sections), sizeof sections);
    return file;
  }

  void write(const std::string& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

 private:
  Elf64_Ehdr make_header(size_t sections_at) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = is_64_bit ? ELFCLASS64 : ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = machine;
    header.e_entry = entry;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    header.e_shoff = sections_at;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    return header;
  }
};

}  // namespace assay::capture::fake
