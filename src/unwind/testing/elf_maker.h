// Makes small ELF files with chosen call-frame information, for the tests and fuzzers of this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dwarf.h>
#include <elf.h>

#include "elf/elf_file.h"

namespace assay::unwind::testing {

using Bytes = std::vector<std::byte>;

class ByteWriter {
 public:
  template <class T>
  ByteWriter& fixed(T value) {
    auto at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return *this;
  }
  ByteWriter& u8(int value) { return fixed(static_cast<uint8_t>(value)); }
  ByteWriter& raw(const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  ByteWriter& text(const char* t) {
    for (; *t; ++t) u8(*t);
    return u8(0);
  }
  Bytes bytes;
};

inline Bytes make_bytes(std::initializer_list<int> values) {
  Bytes out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

// Makes a section of one CIE per kind and its FDEs, with absolute 8-byte addresses.
class CfiMaker {
 public:
  // The usual x86-64 CIE: code 1, data −8, return address in 16; CFA = rsp + 8, rip at CFA − 8.
  CfiMaker(bool is_signal = false,
           const Bytes& initial = make_bytes({DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1})) {
    ByteWriter body;
    body.fixed<uint32_t>(0).u8(1).text(is_signal ? "zRS" : "zR");
    body.u8(1).u8(0x78).u8(16).u8(1).u8(DW_EH_PE_absptr).raw(initial);
    entry(body.bytes);
  }
  CfiMaker& fde(uint64_t begin, uint64_t bytes, const Bytes& program) {
    ByteWriter body;
    body.fixed(static_cast<uint32_t>(section_.bytes.size() + 4));
    body.fixed(begin).fixed(bytes).u8(0).raw(program);
    entry(body.bytes);
    return *this;
  }
  const Bytes& section() const { return section_.bytes; }

 private:
  void entry(Bytes body) {
    while (body.size() % 8 != 4) body.push_back(std::byte{DW_CFA_nop});
    section_.fixed(static_cast<uint32_t>(body.size())).raw(body);
  }
  ByteWriter section_;
};

struct NamedSection {
  std::string name;
  uint64_t vaddr = 0;
  Bytes bytes;
  uint32_t type = SHT_PROGBITS;
  uint32_t link = 0;
};

// One executable PT_LOAD at file offset 0x1000 with `text` at `text_vaddr`, and the sections given.
inline Bytes make_elf(uint64_t text_vaddr, const Bytes& text, std::vector<NamedSection> sections,
                      uint16_t machine = EM_X86_64) {
  constexpr uint64_t kTextAt = 0x1000;
  ByteWriter file;
  file.bytes.resize(kTextAt);
  file.raw(text);
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  sections.push_back({".shstrtab", 0, {}, SHT_STRTAB, 0});
  for (NamedSection& s : sections) {
    Elf64_Shdr h{};
    h.sh_name = static_cast<uint32_t>(names.size());
    names += s.name + '\0';
    if (s.name == ".shstrtab") {
      for (char c : names) s.bytes.push_back(static_cast<std::byte>(c));
    }
    h.sh_type = s.type;
    if (s.type == SHT_SYMTAB || s.type == SHT_DYNSYM) h.sh_entsize = sizeof(Elf64_Sym);
    h.sh_addr = s.vaddr;
    h.sh_link = s.link;
    h.sh_offset = file.bytes.size();
    h.sh_size = s.bytes.size();
    file.raw(s.bytes);
    headers.push_back(h);
  }
  Elf64_Ehdr e{};
  std::memcpy(e.e_ident, ELFMAG, SELFMAG);
  e.e_ident[EI_CLASS] = ELFCLASS64;
  e.e_ident[EI_DATA] = ELFDATA2LSB;
  e.e_machine = machine;
  e.e_phoff = sizeof e;
  e.e_phentsize = sizeof(Elf64_Phdr);
  e.e_phnum = 1;
  e.e_shoff = file.bytes.size();
  e.e_shentsize = sizeof(Elf64_Shdr);
  e.e_shnum = static_cast<uint16_t>(headers.size());
  e.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  Elf64_Phdr p{};
  p.p_type = PT_LOAD;
  p.p_flags = PF_R | PF_X;
  p.p_offset = kTextAt;
  p.p_vaddr = text_vaddr;
  p.p_filesz = p.p_memsz = text.size();
  for (const Elf64_Shdr& h : headers) file.fixed(h);
  std::memcpy(file.bytes.data(), &e, sizeof e);
  std::memcpy(file.bytes.data() + sizeof e, &p, sizeof p);
  return file.bytes;
}

inline Result<std::unique_ptr<elf::ElfFile>> open_elf(std::span<const std::byte> bytes) {
  return elf::ElfFile::open_memory({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace assay::unwind::testing
