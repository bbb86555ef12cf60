// DwarfFile: the debug information of one file: its units by offset, and the files it refers to.
//
// In: an ELF file with .debug_info (or .debug_info.dwo). Out: units, opened on demand and kept.
// Written by hand rather than on libdw because Debian 12's libdw (0.188) reads no .dwp packages,
// keeps every entry it has seen in memory, and cannot be asked for the flat tables that are cached
// here; what bench/symbols measures depends on reading a unit in one pass. Threads: none; guarded
// by its module's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "elf/elf_file.h"
#include "symbol/dwarf/dwarf_unit.h"

namespace assay::symbol {

using elf::ByteSource;
using elf::ElfFile;
using elf::SectionBytes;

class DwarfFile {
 public:
  // `split`: read the .dwo sections of a .dwo or .dwp file.
  DwarfFile(std::unique_ptr<ElfFile> owned, bool split);
  DwarfFile(ElfFile& file, bool split);

  ElfFile& elf() { return file_; }
  const DwarfSections& sections() const { return sections_; }
  DwarfFile* alt() { return alt_.get(); }
  void set_alt(std::unique_ptr<DwarfFile> alt) { alt_ = std::move(alt); }

  const std::vector<UnitHeader>& units();
  DwarfUnit* unit(size_t index);
  // The unit that holds an offset of .debug_info; null when none does.
  DwarfUnit* unit_at(uint64_t offset);
  // The split unit with this id, read on behalf of `skeleton`; null when it is not in this file. Of
  // a .dwp package, the unit's own parts of each section.
  std::unique_ptr<DwarfUnit> split_unit(uint64_t dwo_id, const DwarfUnit& skeleton);

  std::shared_ptr<const AbbrevTable> abbrevs(const SectionBytes& section, uint64_t offset);
  // Range entries may be read over and over by hostile units; all readings together have a limit.
  size_t take_range_budget(size_t wanted) const {
    return wanted < range_budget_ ? wanted : range_budget_;
  }
  void spend_range() { range_budget_ -= range_budget_ > 0; }
  // Gives back the memory of sections once it exceeds what is worth keeping.
  void trim();

 private:
  bool narrow_to_package_unit(uint64_t dwo_id, DwarfSections& sections);

  std::unique_ptr<ElfFile> owned_;
  ElfFile& file_;
  DwarfSections sections_;
  bool split_;
  bool scanned_ = false;
  std::vector<UnitHeader> units_;
  std::vector<std::unique_ptr<DwarfUnit>> opened_;                  // by unit index
  std::map<uint64_t, std::shared_ptr<const AbbrevTable>> abbrevs_;  // by file offset
  uint64_t abbrev_budget_ = uint64_t{1} << 30;  // bytes of tables, read again where given back
  size_t range_budget_ = size_t{1} << 28;
  std::unique_ptr<DwarfFile> alt_;
};

}  // namespace assay::symbol
