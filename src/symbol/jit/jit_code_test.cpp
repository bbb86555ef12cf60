#include "symbol/jit/jit_code.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "symbol/symbolizer.h"

namespace assay::symbol {
namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string dump_header() {
  std::string out;
  put<uint32_t>(out, 0x4A695444);
  put<uint32_t>(out, 1);
  put<uint32_t>(out, 40);
  put<uint32_t>(out, 62);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, 7);
  put<uint64_t>(out, 0);
  put<uint64_t>(out, 0);
  return out;
}
std::string record(uint32_t id, const std::string& body) {
  std::string out;
  put(out, id);
  put<uint32_t>(out, static_cast<uint32_t>(16 + body.size()));
  put<uint64_t>(out, 99);
  return out + body;
}
std::string load(uint64_t at, uint64_t size, const std::string& name) {
  std::string body;
  put<uint64_t>(body, 0);
  put<uint64_t>(body, at);
  put<uint64_t>(body, at);
  put<uint64_t>(body, size);
  put<uint64_t>(body, 1);
  return record(0, body + name + '\0' + std::string(size, '\x90'));
}
std::string lines(uint64_t at) {
  std::string body;
  put<uint64_t>(body, at);
  put<uint64_t>(body, 2);
  put<uint64_t>(body, at);
  put<uint32_t>(body, 10);
  put<uint32_t>(body, 0);
  body += std::string("/src/a.js") + '\0';
  put<uint64_t>(body, at + 8);
  put<uint32_t>(body, 11);
  put<uint32_t>(body, 0);
  body += std::string("\xff") + '\0';
  return record(2, body);
}

TEST(PerfMap, ReadsLinesAndLeavesTheUnfinishedOne) {
  JitCode code;
  std::string text = "1000 20 first name\n0x2000 0x10 second\nnonsense\n3000 zz bad\n4000 10 unfin";
  EXPECT_EQ(read_perf_map(text, code), text.size() - strlen("4000 10 unfin"));
  ASSERT_NE(code.find(0x101f), nullptr);
  EXPECT_EQ(code.find(0x101f)->name, "first name");
  EXPECT_EQ(code.find(0x1020), nullptr);
  EXPECT_EQ(code.find(0x2008)->name, "second");
  EXPECT_EQ(code.size(), 2u);
}

TEST(PerfMap, NewerCodeReplacesOlder) {
  JitCode code;
  read_perf_map("1000 100 old\n1040 10 new\n", code);
  EXPECT_EQ(code.find(0x1048)->name, "new");
  EXPECT_EQ(code.find(0x1000), nullptr) << "code that was partly overwritten is gone";
}

TEST(JitDump, LoadsMovesAndLines) {
  JitCode code;
  JitDumpReader reader;
  std::string move;
  put<uint64_t>(move, 0);
  put<uint64_t>(move, 0);
  put<uint64_t>(move, 0x5000);
  put<uint64_t>(move, 0x9000);
  put<uint64_t>(move, 16);
  put<uint64_t>(move, 1);
  std::string bytes = dump_header() + lines(0x5000) + load(0x5000, 16, "jitted") + record(1, move) +
                      load(0x6000, 4, "b");
  // Byte by byte, as a reader may find a file that is being written.
  size_t used = 0;
  for (size_t have = 1; have <= bytes.size(); ++have)
    used += reader.read(bytes.substr(used, have - used), code);
  EXPECT_EQ(used, bytes.size());
  EXPECT_FALSE(reader.damaged());
  EXPECT_EQ(code.find(0x5000), nullptr);
  ASSERT_NE(code.find(0x9008), nullptr);
  EXPECT_EQ(code.find(0x9008)->name, "jitted");
  ASSERT_EQ(code.find(0x9008)->lines.size(), 2u);
  EXPECT_EQ(code.find(0x9008)->lines[1].address, 0x9008u);
  EXPECT_EQ(code.find(0x9008)->lines[1].file, "/src/a.js");
  EXPECT_EQ(code.find(0x6003)->name, "b");
}

TEST(JitDump, MutatedFilesNeverCrash) {
  std::string good =
      dump_header() + lines(0x5000) + load(0x5000, 16, "jitted") + load(0x6000, 64, "b");
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (size_t k = 1 + random() % 4; k > 0; --k)
      bad[random() % bad.size()] = static_cast<char>(random());
    bad.resize(bad.size() - random() % 40);
    JitCode code;
    JitDumpReader reader;
    EXPECT_LE(reader.read(bad, code), bad.size());
    JitCode other;
    EXPECT_LE(read_perf_map(bad, other), bad.size());
  }
}

TEST(JitNames, ReadsThePerfMapOfAProcessAsItGrows) {
  std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  if (std::filesystem::exists(path)) GTEST_SKIP() << "skipped: " << path << " is in use";
  std::ofstream(path) << "7000 100 py::handler:/srv/app.py\n";
  auto symbolizer = Symbolizer::create({});
  model::Module module{model::ModuleId{0}, model::ModuleKind::anonymous,
                       "[anon " + std::to_string(::getpid()) + "]", ""};
  symbolizer->add_module(::getpid(), {}, module);
  auto at = [&](uint64_t address) { return symbolizer->resolve(module.id, address).at(0); };
  EXPECT_EQ(at(0x7010).function, "handler");
  EXPECT_EQ(at(0x7010).file, "/srv/app.py");
  EXPECT_EQ(at(0x8000).function, module.path + "+0x8000");
  std::ofstream(path, std::ios::app) << "8000 10 JS:*render /srv/page.js:12:3\n";
  EXPECT_EQ(at(0x8000).function, "render");
  EXPECT_EQ(at(0x8000).function_line, 12u);
  EXPECT_EQ(symbolizer->module_status(module.id).source, "perf map " + path);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace assay::symbol
