// The small tables: symbols and kernel symbols.
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "symbol/elf/symbol_table.h"
#include "symbol/kernel/kernel_symbols.h"
#include "symbol/kernel/kernel_text.h"
#include "symbol/symbolizer.h"

namespace assay::symbol {
namespace {

std::string name_at(const SymbolTable& table, uint64_t address) {
  const Symbol* symbol = table.find(address);
  return symbol ? std::string(symbol->name) : "";
}

TEST(SymbolTable, InnerSymbolsCutTheirPieceOut) {
  SymbolTable table(SymbolTable::Kind::functions);
  table.add(0x100, 0x100, "outer");
  table.add(0x140, 0x10, "inner");
  table.add(0x300, 0x10, "far");
  table.finish();
  EXPECT_EQ(name_at(table, 0xff), "");
  EXPECT_EQ(name_at(table, 0x100), "outer");
  EXPECT_EQ(name_at(table, 0x14f), "inner");
  EXPECT_EQ(name_at(table, 0x150), "outer");
  EXPECT_EQ(name_at(table, 0x200), "") << "beyond a symbol's size is not that symbol";
  EXPECT_EQ(name_at(table, 0x30f), "far");
}

TEST(SymbolTable, AliasesChooseTheSameNameInAnyOrder) {
  for (bool reversed : {false, true}) {
    SymbolTable table(SymbolTable::Kind::functions);
    std::vector<const char*> names{"__libc_malloc", "malloc", "__malloc"};
    if (reversed) std::reverse(names.begin(), names.end());
    for (const char* name : names) table.add(0x10, 0x10, name);
    table.finish();
    EXPECT_EQ(name_at(table, 0x18), "malloc");
  }
}

TEST(SymbolTable, OverlapsOfAnyKindAreSafe) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    SymbolTable table(SymbolTable::Kind::functions);
    for (int k = 0; k < 50; ++k) table.add(random() % 256, random() % 64, "x");
    table.add(UINT64_MAX - 2, UINT64_MAX, "end");
    table.finish();
    for (uint64_t at = 0; at < 400; ++at) (void)table.find(at);
  }
}

TEST(KernelSymbols, ReadsCodeModulesAndData) {
  auto table = KernelSymbols::parse(
      "0000000000000000 A fixed_percpu_data\n"
      "ffffffff81000000 T _text\n"
      "ffffffff81000000 T startup_64\n"
      "ffffffff81000100 t do_work\n"
      "ffffffff82000000 D jiffies\n"
      "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n"
      "garbage\n"
      "ffffffff81000200 t ");
  KernelSymbol symbol;
  ASSERT_TRUE(table.find_code(0xffffffff81000110, symbol));
  EXPECT_EQ(symbol.name, "do_work");
  ASSERT_TRUE(table.find_code(0xffffffff81000000, symbol));
  EXPECT_EQ(symbol.name, "_text");
  ASSERT_TRUE(table.find_code(0xffffffffc0000010, symbol));
  EXPECT_EQ(symbol.name, "nft_do_chain");
  EXPECT_EQ(symbol.module, "nf_tables");
  EXPECT_FALSE(table.find_code(0x1000, symbol));
  ASSERT_TRUE(table.find_data(0xffffffff82000004, symbol));
  EXPECT_EQ(symbol.name, "jiffies");
  EXPECT_EQ(table.problem(), "");
}

TEST(KernelSymbols, HiddenAddressesAreAProblemWithARemedy) {
  auto table = KernelSymbols::parse("0000000000000000 T _text\n0000000000000000 T startup_64\n");
  EXPECT_EQ(table.size(), 0u);
  EXPECT_NE(table.problem().find("kptr_restrict"), std::string::npos);
}

TEST(KernelSymbols, TheKernelIsAModuleOfTheSymbolizer) {
  std::string path = ::testing::TempDir() + "/kallsyms";
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("ffffffff81000000 T vfs_read\nffffffffc0000000 t nft_do_chain\t[nf_tables]\n", file);
  std::fclose(file);
  Options options;
  options.kallsyms = path;
  auto symbolizer = Symbolizer::create(options);
  model::Module kernel{model::ModuleId{2}, model::ModuleKind::kernel, "[kernel]", ""};
  symbolizer->add_module(0, {}, kernel);
  EXPECT_EQ(symbolizer->resolve(kernel.id, 0xffffffff81000005).at(0).function, "vfs_read");
  EXPECT_EQ(symbolizer->resolve(kernel.id, 0xffffffffc0000005).at(0).system_name,
            "nft_do_chain [nf_tables]");
  EXPECT_EQ(symbolizer->resolve(kernel.id, 0x10).at(0).function, "[kernel]+0x10");
  std::vector<model::Frame> frames{
      {kernel.id, 0xffffffffc0000005}, {model::ModuleId{9}, 1}, {kernel.id, 0xffffffff81000005}};
  auto all = symbolizer->resolve_all(frames);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].at(0).function, "nft_do_chain");
  EXPECT_TRUE(all[1].empty());
  EXPECT_EQ(all[2].at(0).function, "vfs_read");
}

TEST(KernelText, AnswersAsTheTableItCameFrom) {
  std::mt19937_64 random(1);
  std::string text = "ffffffff81000000 T _stext\nffffffff81000000 T first\n";
  uint64_t address = 0xffffffff81000000, end = 0;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 4 != 0) address += random() % 50 == 0 ? 9 << 20 : random() % 300;
    text += fmt::format("{:x} {} f{}\n", address, "tTwWdb"[random() % 6], random() % 100);
  }
  end = address + 16;
  text += fmt::format("{:x} T last\n{:x} T _etext\n{:x} t beyond\n", end, end, end + 100);
  KernelSymbols whole = KernelSymbols::parse(text);
  std::string path = ::testing::TempDir() + "/kernel.symbols";
  auto kept = [&](const std::string& written) {
    std::ofstream(path) << written;
    return KernelText::open(path);
  };
  auto core = kept(whole.core_text());
  ASSERT_TRUE(core);
  EXPECT_EQ(core->range().begin, 0xffffffff81000000);
  EXPECT_EQ(core->range().end, end);
  int found = 0;
  for (uint64_t at = 0xffffffff81000000; at < end; at += random() % 5000) {
    KernelSymbol want, got;
    bool is_known = whole.find_code(at, want);
    ASSERT_EQ(core->find_code(at, got), is_known) << std::hex << at;
    if (!is_known) continue;
    ++found;
    ASSERT_EQ(got.name, want.name) << std::hex << at;
    ASSERT_EQ(got.start, want.start);
  }
  EXPECT_GT(found, 1000);
  // What is cut, empty or something else is no cache.
  std::string good = whole.core_text();
  EXPECT_FALSE(kept(""));
  EXPECT_FALSE(kept("\n"));
  EXPECT_FALSE(kept("nonsense\n"));
  EXPECT_FALSE(kept(good.substr(0, good.size() - 1)));
  EXPECT_FALSE(kept(good.substr(0, good.size() / 2)));
  EXPECT_FALSE(kept("1000 T _stext\n"));
  EXPECT_FALSE(KernelText::open(path + ".none"));
}

TEST(KernelCache, KeepsTheKernelsOwnCodeForTheBootAlone) {
  namespace fs = std::filesystem;
  std::string folder = ::testing::TempDir() + "/kernel-cache";
  fs::remove_all(folder);
  fs::create_directories(folder);
  auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  auto name_of = [&](uint64_t address) {
    Options options;
    options.kallsyms = folder + "/kallsyms";
    options.boot_id_file = folder + "/boot_id";
    options.cache_dir = folder + "/cache";
    auto symbolizer = Symbolizer::create(options);
    model::Module kernel{model::ModuleId{2}, model::ModuleKind::kernel, "[kernel]", ""};
    symbolizer->add_module(0, {}, kernel);
    return symbolizer->resolve(kernel.id, address).at(0).function;
  };
  write("boot_id", "1b4e28ba-2fa1-11d2\n");
  write("kallsyms",
        "1000 T _stext\n1000 T first\n1100 t second\n1100 T alias\n1200 T _etext\n"
        "5000 t in_module\t[nf_tables]\n");
  EXPECT_EQ(name_of(0x1180), "second");
  // From now on only the cache knows the code; what comes and goes is asked for anew.
  write("kallsyms", "1000 T _stext\n1004 T other\n1200 T _etext\n5000 t reloaded\t[nf_tables]\n");
  EXPECT_EQ(name_of(0x1180), "second");
  EXPECT_EQ(name_of(0x1000), "_stext") << "the first name of an address, as in the whole table";
  EXPECT_EQ(name_of(0x5004), "reloaded");
  EXPECT_EQ(name_of(0x1204), "_etext");
  write("boot_id", "another-b007\n");  // no boot id: nothing is kept
  EXPECT_EQ(name_of(0x1180), "other");
  write("boot_id", "2b4e28ba-2fa1-11d2\n");
  EXPECT_EQ(name_of(0x1180), "other");
  auto files = std::distance(fs::directory_iterator(folder + "/cache"), fs::directory_iterator());
  EXPECT_EQ(files, 1) << "the earlier boot's is removed";
  std::string damaged = fs::directory_iterator(folder + "/cache")->path().string();
  std::ofstream(damaged) << "nonsense";
  EXPECT_EQ(name_of(0x1000), "_stext");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay::symbol
