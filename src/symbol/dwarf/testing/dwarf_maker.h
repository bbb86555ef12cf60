// Makes small ELF files with chosen DWARF sections, byte by byte, for the tests of this folder.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dwarf.h>
#include <elf.h>

#include "elf/elf_file.h"
#include "model/location.h"
#include "symbol/file_access.h"
#include "symbol/dwarf/debug_info.h"
#include "symbol/elf/debug_files.h"

namespace assay::symbol::testing {

class Section {
 public:
  template <class T>
  Section& fixed(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Section& u8(unsigned value) { return fixed(static_cast<uint8_t>(value)); }
  Section& u16(unsigned value) { return fixed(static_cast<uint16_t>(value)); }
  Section& u32(uint64_t value) { return fixed(static_cast<uint32_t>(value)); }
  Section& u64(uint64_t value) { return fixed(value); }
  Section& uleb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8((value & 0x7f) | 0x80);
    return u8(static_cast<unsigned>(value));
  }
  Section& text(const std::string& value) {
    bytes_ += value + '\0';
    return *this;
  }
  Section& raw(const std::string& more) {
    bytes_ += more;
    return *this;
  }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  void patch_u32(size_t at, uint32_t value) { std::memcpy(bytes_.data() + at, &value, 4); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

using Attr = std::pair<unsigned, unsigned>;  // name, form

inline void add_abbrev(Section& to, uint64_t code, unsigned tag, bool children,
                       const std::vector<Attr>& attrs) {
  to.uleb(code).uleb(tag).u8(children);
  for (auto [name, form] : attrs) to.uleb(name).uleb(form);
  to.u8(0).u8(0);
}

// One unit of DWARF 4 (or less): entries are written by the test, end() closes it.
class Unit {
 public:
  explicit Unit(unsigned version = 4) { info.u32(0).u16(version).u32(0).u8(8); }
  void end() { info.patch_u32(0, info.size() - 4); }
  Section info;
};

inline constexpr uint64_t kText = 0x1000, kTextBytes = 0x1000;

using Sections = std::map<std::string, std::string>;

// 64-bit, with code from kText on.
inline std::string make_elf(Sections sections) {
  sections[".text"] = std::string(kTextBytes, '\x90');
  std::string names(1, '\0'), body(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> headers(1);
  for (const auto& [name, bytes] : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<uint32_t>(names.size());
    names += name + '\0';
    header.sh_type = SHT_PROGBITS;
    if (name == ".text") header.sh_flags = SHF_ALLOC | SHF_EXECINSTR, header.sh_addr = kText;
    header.sh_offset = body.size();
    header.sh_size = bytes.size();
    body += bytes;
    headers.push_back(header);
  }
  Elf64_Shdr last{};
  last.sh_name = static_cast<uint32_t>(names.size());
  names += ".shstrtab";
  names += '\0';
  last.sh_type = SHT_STRTAB;
  last.sh_offset = body.size();
  last.sh_size = names.size();
  headers.push_back(last);
  body += names;
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_type = ET_DYN;
  elf.e_shoff = body.size();
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = static_cast<uint16_t>(headers.size());
  elf.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  std::memcpy(body.data(), &elf, sizeof elf);
  for (const Elf64_Shdr& header : headers)
    body.append(reinterpret_cast<const char*>(&header), sizeof header);
  return body;
}

// What the sections say of an address, innermost first.
inline std::vector<model::Location> find_in(const Sections& sections, uint64_t address) {
  auto file = elf::ElfFile::open_memory(make_elf(sections));
  if (!file) return {};
  DebugFiles files(0, "", direct_file_access(), false);
  DebugInfo debug(**file, "", {{kText, kText + kTextBytes}}, files, "", "");
  std::vector<model::Location> out;
  debug.find(address, true, out);
  return out;
}

inline std::string function_at(const Sections& sections, uint64_t address) {
  auto found = find_in(sections, address);
  return found.empty() ? "" : found.back().function;
}

}  // namespace assay::symbol::testing
