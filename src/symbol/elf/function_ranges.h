// FunctionRanges: where functions begin and end according to a module's unwind information.
//
// Stripped programs keep .eh_frame; its entries (FDEs) tell functions apart where no symbol does.
// In: an ELF file. Out: the range that holds an address. Malformed entries end the reading.
// Threads: const after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "elf/elf_file.h"

namespace assay::symbol {

using elf::ByteSource;
using elf::ElfFile;
using elf::SectionBytes;

struct FunctionRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

class FunctionRanges {
 public:
  explicit FunctionRanges(ElfFile& file);

  std::optional<FunctionRange> find(uint64_t address) const;
  size_t size() const { return ranges_.size(); }

 private:
  void read(std::string_view bytes, uint64_t address);

  std::vector<FunctionRange> ranges_;
};

}  // namespace assay::symbol
