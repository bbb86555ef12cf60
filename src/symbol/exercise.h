// Runs every reader of ELF files over one file's bytes, as fuzzers and their tests do.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "symbol/elf/debug_files.h"
#include "symbol/dwarf/debug_info.h"
#include "symbol/elf/function_ranges.h"
#include "symbol/elf/symbol_table.h"
#include "symbol/file_access.h"

namespace assay::symbol {

// Returns how many locations were found: a value that depends on everything that was read.
inline size_t exercise_elf_readers(std::string bytes) {
  auto file = ElfFile::open(ByteSource::from_memory(std::move(bytes)));
  if (!file) return 0;
  ElfFile& elf = **file;
  (void)elf.build_id();
  (void)elf.debug_link();
  (void)elf.debug_alt_link();
  SymbolTable functions(SymbolTable::Kind::functions), data(SymbolTable::Kind::data);
  std::vector<std::string> names;
  functions.add(elf);
  add_plt_symbols(elf, functions, names);
  functions.finish();
  data.add(elf);
  data.finish();
  FunctionRanges ranges(elf);
  std::vector<PcRange> code;
  for (const auto& section : elf.sections()) {
    if (section.executable() && section.size <= UINT64_MAX - section.address) {
      code.push_back({section.address, section.address + section.size});
    }
  }
  DebugFiles files(0, "", direct_file_access(), false);
  DebugInfo debug(elf, "", code, files, "", "");
  std::vector<model::Location> out;
  for (const PcRange& range : code) {
    uint64_t step = std::max<uint64_t>(1, (range.end - range.start) / 64);
    for (uint64_t at = range.start, i = 0; at < range.end && i < 64; at += step, ++i) {
      debug.find(at, true, out);
      (void)functions.find(at);
      (void)data.find(at);
      (void)ranges.find(at);
      if (at > UINT64_MAX - step) break;
    }
    if (out.size() > 100000) break;
  }
  return out.size();
}

}  // namespace assay::symbol
