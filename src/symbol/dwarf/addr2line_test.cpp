// Every address of a compiled program against binutils' addr2line, in each version of DWARF.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "symbol/file_access.h"
#include "symbol/dwarf/debug_info.h"
#include "symbol/elf/debug_files.h"

namespace assay::symbol {
namespace {

namespace fs = std::filesystem;

// Plain C, so that names are the same whoever prints them; calls within calls, loops, two files.
constexpr const char* kHeader = R"(static inline __attribute__((always_inline)) int twice(int x) {
  int y = x * 2;
  return y + (y >> 3);
}
)";
constexpr const char* kProgram = R"(#include "part.h"
volatile int sink;
static inline __attribute__((always_inline)) int mix(int a, int b) {
  int t = twice(a) ^ b;
  if (t & 1)
    t += twice(b);
  return t;
}
__attribute__((noinline)) int loop(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += mix(i, n);
    sink = sum;
  }
  return sum;
}
__attribute__((noinline)) int choose(int n) {
  switch (n & 3) {
    case 0:
      return mix(n, 1);
    case 1:
      sink = 2;
      return loop(n);
    default:
      sink = 3;
  }
  return twice(n);
}
int main(int argc, char** argv) {
  (void)argv;
  sink = choose(argc);
  return loop(argc) & 1;
}
)";

bool run(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

struct Frame {
  std::string function, file;
  uint64_t line = 0;
  bool operator==(const Frame&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Frame& frame) {
  return out << frame.function << " at " << frame.file << ":" << frame.line;
}

class Addr2line : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay-lines-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    std::ofstream(dir_ / "part.h") << kHeader;
    std::ofstream(dir_ / "prog.c") << kProgram;
  }
  void TearDown() override { fs::remove_all(dir_); }

  bool in_dir(const std::string& command) const {
    return run("cd " + dir_.string() + " && " + command);
  }

  // The addresses of the program's own functions, each byte.
  std::vector<uint64_t> addresses() const {
    std::vector<uint64_t> out;
    std::ifstream in(dir_ / "nm.txt");
    std::string start, size, type, name;
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      if (!(words >> start >> size >> type >> name)) continue;
      if (name != "loop" && name != "choose" && name != "main") continue;
      uint64_t begin = std::stoull(start, nullptr, 16),
               end = begin + std::stoull(size, nullptr, 16);
      for (uint64_t at = begin; at < end; ++at) out.push_back(at);
    }
    return out;
  }

  // "0x…", then a function and "file:line (discriminator N)" for each frame, innermost first.
  std::map<uint64_t, std::vector<Frame>> theirs() const {
    std::map<uint64_t, std::vector<Frame>> out;
    std::ifstream in(dir_ / "out.txt");
    std::vector<Frame>* frames = nullptr;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("0x")) {
        frames = &out[std::stoull(line, nullptr, 16)];
        continue;
      }
      Frame frame{line, "", 0};
      std::getline(in, line);
      size_t colon = line.rfind(':', line.find(' '));
      frame.file = fs::path(line.substr(0, colon)).filename();
      frame.line = std::strtoull(line.c_str() + colon + 1, nullptr, 10);
      frames->push_back(frame);
    }
    return out;
  }

  fs::path dir_;
};

TEST_P(Addr2line, SaysTheSameOfEveryAddress) {
  if (!in_dir(fmt::format("gcc {} prog.c -o prog", GetParam())))
    GTEST_SKIP() << "skipped: no gcc here, or it refuses " << GetParam();
  if (!in_dir("nm -S --defined-only prog > nm.txt")) GTEST_SKIP() << "skipped: no binutils here";
  auto all = addresses();
  ASSERT_GT(all.size(), 50u);
  {
    std::ofstream list(dir_ / "in.txt");
    for (uint64_t at : all) list << fmt::format("{:#x}\n", at);
  }
  if (!in_dir("addr2line -a -f -i -e prog < in.txt > out.txt"))
    GTEST_SKIP() << "skipped: no addr2line here";
  auto expected = theirs();
  UniqueFd fd(::open((dir_ / "prog").c_str(), O_RDONLY | O_CLOEXEC));
  auto file = elf::ElfFile::open(fd.get());
  ASSERT_TRUE(file);
  std::vector<PcRange> code;
  for (const auto& section : (*file)->sections()) {
    if (section.executable()) code.push_back({section.address, section.address + section.size});
  }
  DebugFiles files(0, "", direct_file_access(), false);
  DebugInfo debug(**file, "", code, files, "", "");
  size_t deepest = 0;
  for (uint64_t at : all) {
    std::vector<model::Location> found;
    debug.find(at, true, found);
    std::vector<Frame> ours;
    for (const auto& location : found)
      ours.push_back({location.function, fs::path(location.file).filename(), location.line});
    ASSERT_EQ(ours, expected[at]) << fmt::format("{:#x}", at);
    deepest = std::max(deepest, ours.size());
  }
  EXPECT_EQ(deepest, 3u) << "twice() in mix() in loop()";
}

// (Binutils 2.40 reads no lines of the 64-bit format: compiled_programs_test has that one.)
INSTANTIATE_TEST_SUITE_P(Versions, Addr2line,
                         ::testing::Values("-O0 -g -gdwarf-2", "-O2 -g -gdwarf-2",
                                           "-O2 -g -gdwarf-3", "-O1 -g -gdwarf-4",
                                           "-O2 -g -gdwarf-4", "-O2 -g -gdwarf-5",
                                           "-O2 -g -gdwarf-5 -no-pie",
                                           "-O2 -g -gdwarf-5 -ffunction-sections"));

}  // namespace
}  // namespace assay::symbol
