// SymbolTable: the function (or data) symbols of one module as flat, non-overlapping ranges.
//
// In: .symtab and .dynsym sections, in any order and overlapping. Out: the best symbol of an
// address by binary search. Sizes are honoured; a symbol without one ends where the next begins or
// its section ends. Of several symbols for the same bytes the one people know wins, always the same
// one: functions before untyped labels, exported before local, fewer leading underscores, then the
// shorter name. Threads: const after finish(). Names point into the file's string tables.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "elf/elf_file.h"

namespace assay::symbol {

using elf::ByteSource;
using elf::ElfFile;
using elf::SectionBytes;

struct Symbol {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string_view name;  // as in the table, version suffix ("@@GLIBC_2.34") cut off
};

class SymbolTable {
 public:
  enum class Kind { functions, data };

  explicit SymbolTable(Kind kind) : kind_(kind) {}

  // Adds what `file` defines; true when it has any symbol of this kind.
  bool add(ElfFile& file);
  void add(uint64_t start, uint64_t size, std::string_view name);
  void finish();

  const Symbol* find(uint64_t address) const;
  size_t size() const { return flat_.size(); }

 private:
  struct Candidate {
    uint64_t start = 0;
    uint64_t size = 0;
    uint64_t limit = 0;  // end of its section
    std::string_view name;
    uint8_t rank = 0;  // lower is better
  };
  void add_section(ElfFile& file, const elf::Section& table);
  static bool better(const Candidate& a, const Candidate& b);

  Kind kind_;
  std::vector<Candidate> candidates_;
  std::vector<Symbol> flat_;
};

// Adds names for the stubs through which a module calls others: "malloc@plt". `names` keeps the
// text.
void add_plt_symbols(ElfFile& file, SymbolTable& table, std::vector<std::string>& names);

}  // namespace assay::symbol
