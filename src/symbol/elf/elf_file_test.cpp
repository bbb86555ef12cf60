#include "symbol/elf/elf_file.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace assay::symbol {
namespace {

std::unique_ptr<ElfFile> open_corpus(const std::string& name) {
  std::ifstream in(SOURCE_ROOT "/tests/fuzz/corpus/symbol_elf/" + name, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  auto file = ElfFile::open(ByteSource::from_memory(std::move(bytes)));
  return file ? std::move(*file) : nullptr;
}

TEST(ElfFile, ExpectsCompressedSectionsToUnpack) {
  auto plain = open_corpus("gcc_dwarf5.elf"), packed = open_corpus("gcc_zlib.elf");
  ASSERT_TRUE(plain && packed);
  EXPECT_EQ(plain->expected_bytes(".debug_info"), plain->bytes(".debug_info").size);
  EXPECT_EQ(plain->expected_bytes(".debug_nothing"), 0u);
  EXPECT_EQ(packed->expected_bytes(".debug_info"), 4 * packed->find(".debug_info")->size);
}

TEST(ElfFile, CompressedSectionsAreTheBytesThatWereCompressed) {
  auto plain = open_corpus("gcc_dwarf5.elf"), packed = open_corpus("gcc_zlib.elf");
  ASSERT_TRUE(plain && packed);
  for (const char* name : {".debug_info", ".debug_abbrev", ".debug_line"}) {
    ASSERT_TRUE(packed->bytes(name)) << name;
    EXPECT_EQ(packed->bytes(name).size, plain->bytes(name).size) << name;
  }
}

}  // namespace
}  // namespace assay::symbol
