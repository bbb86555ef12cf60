// Any bytes as an ELF file with DWARF: symbols, unwind ranges, units, lines, inlined functions.
#include <cstddef>
#include <cstdint>

#include "symbol/exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::symbol::exercise_elf_readers(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
