#include "elf/elf_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/unit_producers.h"

namespace assay::elf {
namespace {

std::string corpus_bytes(const std::string& name) {
  std::ifstream in(SOURCE_ROOT "/tests/fuzz/corpus/symbol_elf/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::unique_ptr<ElfFile> open_corpus(const std::string& name) {
  auto file = ElfFile::open_memory(corpus_bytes(name));
  return file ? std::move(*file) : nullptr;
}

// A file without a name that holds `bytes`.
UniqueFd file_of(const std::string& bytes) {
  UniqueFd fd(::memfd_create("elf-test", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
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

TEST(ElfFile, AFileAndItsBytesReadTheSame) {
  std::string bytes = corpus_bytes("gcc_dwarf5.elf");
  UniqueFd fd = file_of(bytes);
  auto from_file = ElfFile::open(fd.get());
  auto from_memory = ElfFile::open_memory(bytes);
  ASSERT_TRUE(from_file && from_memory);
  ASSERT_EQ((*from_file)->sections().size(), (*from_memory)->sections().size());
  for (const Section& section : (*from_memory)->sections()) {
    const Section* same = (*from_file)->find(section.name);
    if (!section.has_bytes()) continue;
    ASSERT_NE(same, nullptr) << section.name;
    EXPECT_EQ((*from_file)->bytes(*same).all(), (*from_memory)->bytes(section).all());
  }
  EXPECT_EQ((*from_file)->build_id(), (*from_memory)->build_id());
  EXPECT_TRUE((*from_file)->refusal().empty());
}

TEST(ElfFile, AFileThatShrinksReadsAsZeros) {
  std::string bytes = corpus_bytes("gcc_dwarf5.elf");
  UniqueFd fd = file_of(bytes + std::string(1 << 20, 'x'));
  auto source = ByteSource::from_file(fd.get());
  ASSERT_TRUE(source);
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  std::string_view tail = (*source)->view(bytes.size(), 1 << 20);
  ASSERT_EQ(tail.size(), size_t{1} << 20);
  EXPECT_EQ(tail.find_first_not_of('\0'), std::string_view::npos);
}

TEST(ElfFile, OnlyRegularFilesAreRead) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  auto pipe = ElfFile::open(reading.get());
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().what, "it is not a regular file");
  UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ElfFile::open(zero.get()));
}

TEST(ElfFile, ASectionOverTheBudgetIsRefusedWithAReason) {
  UniqueFd fd = file_of(corpus_bytes("gcc_dwarf5.elf"));
  ReadBudget budget;
  budget.section_bytes = 64;
  auto source = ByteSource::from_file(fd.get(), budget);
  ASSERT_TRUE(source);
  auto file = ElfFile::open(std::move(*source));
  ASSERT_TRUE(file);
  ASSERT_GT((*file)->find(".debug_info")->size, 64u);
  EXPECT_FALSE((*file)->bytes(".debug_info"));
  EXPECT_NE((*file)->refusal().find("section .debug_info has"), std::string::npos)
      << (*file)->refusal();
}

TEST(ElfFile, MemoryStaysWithinTheBudgetAndComesBackWhenReleased) {
  constexpr uint64_t kPiece = 16 << 10;
  UniqueFd fd = file_of(std::string(8 * kPiece, 'a'));
  ReadBudget budget;
  budget.resident_bytes = 2 * kPiece;
  auto source = ByteSource::from_file(fd.get(), budget);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->view(0, 2 * kPiece).size(), 2 * kPiece);
  EXPECT_TRUE((*source)->refusal().empty());
  EXPECT_TRUE((*source)->view(4 * kPiece, 1).empty());
  EXPECT_FALSE((*source)->refusal().empty());
  (*source)->release(0, 2 * kPiece);
  EXPECT_EQ((*source)->view(4 * kPiece, 1), "a");
  EXPECT_TRUE((*source)->view(0, 8 * kPiece).empty()) << "all of it at once never fits";
}

TEST(ElfFile, WhatIsNoElfFileOfAWantedClassIsRefused) {
  std::string bytes = corpus_bytes("gcc_dwarf5.elf");
  EXPECT_FALSE(ElfFile::open_memory(""));
  EXPECT_FALSE(ElfFile::open_memory("#!/bin/sh\nexit 0\n and some more"));
  EXPECT_FALSE(ElfFile::open_memory(bytes.substr(0, 40))) << "it ends in its header";
  std::string other_order = bytes, narrow = bytes;
  other_order[EI_DATA] = ELFDATA2MSB;
  EXPECT_FALSE(ElfFile::open_memory(other_order, Classes::both));
  narrow[EI_CLASS] = ELFCLASS32;
  EXPECT_FALSE(ElfFile::open_memory(narrow));
  auto taken = ElfFile::open_memory(narrow, Classes::both);
  ASSERT_TRUE(taken);
  EXPECT_FALSE((*taken)->is_64_bit());
}

// A 32-bit file with one note section and one symbol, laid out by hand.
std::string small_elf32() {
  struct Layout {
    Elf32_Ehdr header{};
    Elf32_Shdr sections[4]{};
    struct {
      Elf32_Nhdr head{4, 4, NT_GNU_BUILD_ID};
      char name[4] = {'G', 'N', 'U', 0};
      uint8_t id[4] = {0xde, 0xad, 0xbe, 0xef};
    } note;
    char names[8] = {0, 'm', 'a', 'i', 'n', 0, 0, 0};
    Elf32_Sym symbol{};
  } out;
  std::memcpy(out.header.e_ident, ELFMAG, SELFMAG);
  out.header.e_ident[EI_CLASS] = ELFCLASS32;
  out.header.e_ident[EI_DATA] = ELFDATA2LSB;
  out.header.e_machine = EM_386;
  out.header.e_shoff = offsetof(Layout, sections);
  out.header.e_shentsize = sizeof(Elf32_Shdr);
  out.header.e_shnum = 4;
  out.sections[1].sh_type = SHT_NOTE;
  out.sections[1].sh_offset = offsetof(Layout, note);
  out.sections[1].sh_size = sizeof out.note;
  out.sections[2].sh_type = SHT_STRTAB;
  out.sections[2].sh_offset = offsetof(Layout, names);
  out.sections[2].sh_size = sizeof out.names;
  out.sections[3].sh_type = SHT_SYMTAB;
  out.sections[3].sh_offset = offsetof(Layout, symbol);
  out.sections[3].sh_size = out.sections[3].sh_entsize = sizeof(Elf32_Sym);
  out.sections[3].sh_link = 2;
  out.symbol.st_name = 1;
  out.symbol.st_value = 0x8048000;
  return {reinterpret_cast<const char*>(&out), sizeof out};
}

TEST(ElfFile, ThirtyTwoBitFilesTellTheirBuildIdAndSymbols) {
  auto file = ElfFile::open_memory(small_elf32(), Classes::both);
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ((*file)->machine(), EM_386);
  EXPECT_EQ((*file)->build_id(), "deadbeef");
  int seen = 0;
  (*file)->for_each_symbol((*file)->sections()[3], 10,
                           [&](const Elf64_Sym& symbol, const SectionBytes& names) {
                             EXPECT_EQ(names.text(symbol.st_name), "main");
                             EXPECT_EQ(symbol.st_value, 0x8048000u);
                             ++seen;
                           });
  EXPECT_EQ(seen, 1);
}

TEST(ElfFile, ABuildIdThatLeavesItsNoteIsNone) {
  std::string bytes = small_elf32();
  size_t note = bytes.find("GNU") - sizeof(Elf32_Nhdr);
  uint32_t huge = 0x7fffffff;
  std::memcpy(bytes.data() + note + offsetof(Elf32_Nhdr, n_descsz), &huge, sizeof huge);
  auto file = ElfFile::open_memory(bytes, Classes::both);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->build_id(), "");
}

TEST(ElfFile, SectionsOutsideTheFileHaveNoBytes) {
  std::string bytes = corpus_bytes("gcc_dwarf5.elf");
  auto whole = ElfFile::open_memory(bytes);
  ASSERT_TRUE(whole);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  size_t index = 0;
  while ((*whole)->sections()[index].name != ".debug_info") ++index;
  uint64_t far = UINT64_MAX - 8;
  std::memcpy(
      bytes.data() + header.e_shoff + index * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset),
      &far, sizeof far);
  auto file = ElfFile::open_memory(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->find(".debug_info"), nullptr);
  EXPECT_FALSE((*file)->bytes(".debug_info"));
  EXPECT_TRUE((*file)->bytes(".debug_line")) << "its neighbours are still there";
}

std::vector<std::string> producers_of(ElfFile& file, uint32_t most, ProducersEnd& end) {
  std::vector<std::string> out;
  end = for_each_producer(file, most, [&](std::string_view text) { out.emplace_back(text); });
  return out;
}

TEST(UnitProducers, EveryVersionNamesItsCompiler) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SOURCE_ROOT "/tests/fuzz/corpus/symbol_elf")) {
    std::string name = entry.path().filename();
    if (!name.starts_with("gcc_") && !name.starts_with("clang")) continue;
    auto file = open_corpus(name);
    if (!file || !file->has_bytes(".debug_info") || name.find("split") != name.npos) continue;
    ProducersEnd end{};
    auto producers = producers_of(*file, 100, end);
    EXPECT_EQ(end, ProducersEnd::whole) << name;
    ASSERT_FALSE(producers.empty()) << name;
    EXPECT_TRUE(producers[0].starts_with("GNU C") ||
                producers[0].find("clang") != std::string::npos)
        << name << ": " << producers[0];
    ++files;
  }
  EXPECT_GE(files, 2);
}

TEST(UnitProducers, AreCountedAndEndWhereTheSectionBreaks) {
  std::string bytes = corpus_bytes("gcc_dwarf5.elf");
  auto file = ElfFile::open_memory(bytes);
  ASSERT_TRUE(file);
  ProducersEnd end{};
  EXPECT_TRUE(producers_of(**file, 0, end).empty());
  EXPECT_EQ(end, ProducersEnd::too_many);
  // The first unit claims to be longer than its section.
  uint64_t info = (*file)->find(".debug_info")->offset;
  uint32_t huge = 0xffffff00;
  std::memcpy(bytes.data() + info, &huge, sizeof huge);
  auto broken = ElfFile::open_memory(bytes);
  EXPECT_TRUE(producers_of(**broken, 100, end).empty());
  EXPECT_EQ(end, ProducersEnd::unreadable);
}

}  // namespace
}  // namespace assay::elf
