// Any bytes as an ELF file with DWARF: symbols, unwind ranges, units, lines, inlined functions.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "symbol/exercise.h"
#include "tests/fuzz/fuzz_target.h"

// Small programs with inlined functions, by two compilers, in DWARF 4 and 5.
std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> out;
  for (const auto& entry : std::filesystem::directory_iterator(CORPUS_DIR)) {
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay::symbol::exercise_elf_readers(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
