// Where a file defines the few functions that injecting needs.
//
// In: an open ELF file, possibly hostile; out: what its headers and symbol tables say. Reads at
// most a bounded number of symbols. Pure. Failures: what is no ELF file of this machine is an
// Error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::capture {

struct ElfFacts {
  bool is_64_bit = false;
  uint16_t machine = 0;      // e_machine
  bool is_program = false;   // has an entry point of its own: not a library
  std::string interpreter;   // PT_INTERP; empty: linked statically
  uint64_t first_vaddr = 0;  // of the segment that holds the file's beginning
  // Defined functions among those asked for, by name; addresses as in the file.
  std::map<std::string, uint64_t> functions;
};

Result<ElfFacts> read_elf_facts(int fd, const std::vector<std::string>& wanted);

}  // namespace assay::capture
