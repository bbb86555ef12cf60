// Names against programs whose inlined calls are known, built here by the compilers that are
// installed.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"
#include "os/process/module_file.h"
#include "symbol/exercise.h"
#include "symbol/source_text.h"
#include "symbol/symbolizer.h"

namespace assay::symbol {
namespace {

namespace fs = std::filesystem;

// `spot` is a label inside inner(), which is inlined into middle(), which is inlined into outer().
constexpr const char* kProgram = R"(namespace app {
struct Box {
  __attribute__((always_inline)) static inline int inner(int x) {
    asm volatile(".globl spot\nspot: nop");
    return x * 3;
  }
};
__attribute__((always_inline)) static inline int middle(int x) {
  int y = x + 1;
  return y + Box::inner(y);
}
}  // namespace app
__attribute__((noinline)) int outer(int x) {
  int z = x - 1;
  return app::middle(z) + z;
}
int counter[8] = {1};
int main(int argc, char**) { return outer(argc) + counter[argc & 7]; }
)";

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

bool have(const std::string& program) {
  return run("command -v " + program);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

class CompiledPrograms : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(dir_ / "prog.cpp") << kProgram; }

  bool in_dir(const std::string& command) const {
    return run("cd " + dir_.string() + " && " + command);
  }
  std::string program() const { return dir_ / "prog"; }

  // The file offset of a symbol, while the program still has its symbols.
  uint64_t offset_of(const std::string& symbol) const {
    std::string list = dir_ / "nm.txt";
    if (std::system(("nm --defined-only " + program() + " > " + list).c_str()) != 0) return 0;
    std::ifstream in(list);
    uint64_t address = 0;
    for (std::string value, type, name; in >> value >> type >> name;) {
      if (name == symbol) address = std::stoull(value, nullptr, 16);
    }
    UniqueFd fd(::open(program().c_str(), O_RDONLY | O_CLOEXEC));
    auto source = ByteSource::from_file(std::move(fd));
    auto file = ElfFile::open(std::move(*source));
    return (*file)->to_offset(address).value_or(0);
  }

  std::vector<model::Location> locate(uint64_t offset, const Options& options = {}) {
    auto symbolizer = Symbolizer::create(options);
    model::Module module{model::ModuleId{0}, model::ModuleKind::elf, program(), ""};
    symbolizer->add_module(0, {}, module);
    auto out = symbolizer->resolve(module.id, offset);
    status_ = symbolizer->module_status(module.id);
    return out;
  }

  void expect_known_chain(uint64_t offset, const Options& options = {}) {
    auto chain = locate(offset, options);
    std::string file = dir_ / "prog.cpp";
    ASSERT_EQ(chain.size(), 3u) << chain.at(0).function << " " << status_.source << " "
                                << status_.problem;
    EXPECT_EQ(chain[0].function, "app::Box::inner(int)");
    EXPECT_EQ(chain[0].line, 4u);
    EXPECT_EQ(chain[0].function_line, 3u);
    EXPECT_TRUE(chain[0].inlined);
    EXPECT_TRUE(chain[1].function.starts_with("app::middle")) << chain[1].function;
    EXPECT_EQ(chain[1].line, 10u);
    EXPECT_TRUE(chain[1].inlined);
    EXPECT_EQ(chain[2].function, "outer(int)");
    EXPECT_EQ(chain[2].line, 15u);
    EXPECT_EQ(chain[2].function_line, 13u);
    EXPECT_FALSE(chain[2].inlined);
    for (const auto& location : chain) EXPECT_EQ(location.file, file);
    EXPECT_TRUE(status_.has_lines);
  }

  TemporaryDirectory scratch_;
  fs::path dir_ = scratch_.path();
  ModuleStatus status_;
};

struct Build {
  const char* name;
  const char* command;
};
class EachCompiler : public CompiledPrograms, public ::testing::WithParamInterface<Build> {};

TEST_P(EachCompiler, GivesTheKnownChain) {
  std::string command = GetParam().command;
  std::string compiler = command.substr(0, command.find(' '));
  if (!have(compiler)) GTEST_SKIP() << "skipped: no " << compiler << " here";
  if (!in_dir(command + " prog.cpp -o prog"))
    GTEST_SKIP() << "skipped: this compiler refuses: " << command;
  expect_known_chain(offset_of("spot"));
}

INSTANTIATE_TEST_SUITE_P(
    Builds, EachCompiler,
    ::testing::Values(
        Build{"dwarf4", "g++ -O2 -g -gdwarf-4"}, Build{"dwarf5", "g++ -O2 -g -gdwarf-5"},
        Build{"dwarf64", "g++ -O2 -g -gdwarf64"},
        Build{"split4", "g++ -O2 -g -gdwarf-4 -gsplit-dwarf"},
        Build{"split5", "g++ -O2 -g -gdwarf-5 -gsplit-dwarf"}, Build{"zlib", "g++ -O2 -g -gz=zlib"},
        Build{"zlib_gnu", "g++ -O2 -g -gdwarf-4 -gz=zlib-gnu"},
        Build{"static_pie", "g++ -O2 -g -static-pie"}, Build{"no_pie", "g++ -O2 -g -no-pie"},
        Build{"sections", "g++ -O2 -g -ffunction-sections -Wl,--gc-sections"},
        Build{"lto", "g++ -O2 -g -flto"}, Build{"clang", "clang++-19 -O2 -g"},
        Build{"clang4", "clang++-19 -O2 -g -gdwarf-4"},
        Build{"clang_split5", "clang++-19 -O2 -g -gdwarf-5 -gsplit-dwarf"},
        Build{"clang_split4", "clang++-19 -O2 -g -gdwarf-4 -gsplit-dwarf"},
        Build{"clang_zstd", "clang++-19 -O2 -g -gz=zstd"}),
    [](const auto& build) { return std::string(build.param.name); });

TEST_F(CompiledPrograms, PackagesOfSplitUnits) {
  if (!have("g++") || !have("dwp")) GTEST_SKIP() << "skipped: no g++ or dwp here";
  for (const char* version : {"4", "5"}) {
    ASSERT_TRUE(
        in_dir(std::string("g++ -O2 -g -gsplit-dwarf -gdwarf-") + version + " prog.cpp -o prog"));
    if (!in_dir("dwp -e prog -o prog.dwp")) continue;  // binutils' dwp knows DWARF 4 only
    ASSERT_TRUE(in_dir("rm -f *.dwo"));
    expect_known_chain(offset_of("spot"));
  }
}

TEST_F(CompiledPrograms, DwarfFivePackages) {
  if (!have("llvm-dwp")) GTEST_SKIP() << "skipped: no llvm-dwp here";
  if (!have("clang++-19")) GTEST_SKIP() << "skipped: no clang here";
  ASSERT_TRUE(in_dir("clang++-19 -O2 -g -gsplit-dwarf -gdwarf-5 prog.cpp -o prog"));
  // LLVM 14's llvm-dwp never ends on some compilers' files.
  if (!in_dir("timeout 20 llvm-dwp -e prog -o prog.dwp && rm -f *.dwo"))
    GTEST_SKIP() << "skipped: llvm-dwp fails here";
  expect_known_chain(offset_of("spot"));
}

TEST_F(CompiledPrograms, WithoutItsDwoTheSkeletonStillHasLines) {
  if (!have("g++")) GTEST_SKIP() << "skipped: no g++ here";
  ASSERT_TRUE(in_dir("g++ -O2 -g -gsplit-dwarf -gdwarf-5 prog.cpp -o prog"));
  uint64_t spot = offset_of("spot");
  ASSERT_TRUE(in_dir("rm -f *.dwo"));
  auto chain = locate(spot);
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].function, "outer(int)");
  EXPECT_EQ(chain[0].line, 4u);
  EXPECT_NE(status_.problem.find(".dwo is missing"), std::string::npos) << status_.problem;
}

TEST_F(CompiledPrograms, DebugLinkIsFollowedAndChecked) {
  if (!have("g++") || !have("objcopy")) GTEST_SKIP() << "skipped: no g++ or objcopy here";
  for (const char* build_id : {"-Wl,--build-id", "-Wl,--build-id=none"}) {
    ASSERT_TRUE(in_dir(std::string("g++ -O2 -g ") + build_id + " prog.cpp -o prog"));
    uint64_t spot = offset_of("spot");
    ASSERT_TRUE(in_dir(
        "objcopy --only-keep-debug prog prog.debug && strip prog && "
        "objcopy --add-gnu-debuglink=prog.debug prog && mkdir -p .debug && mv prog.debug .debug/"));
    expect_known_chain(spot);
    EXPECT_EQ(status_.source, "debug file " + (dir_ / ".debug/prog.debug").string());
    // A debug file of another build must not be believed.
    ASSERT_TRUE(in_dir(std::string("sed s/app/other/ prog.cpp > b.cpp && g++ -O1 -g ") + build_id +
                       " b.cpp -o b && objcopy --only-keep-debug b .debug/prog.debug"));
    auto chain = locate(spot);
    EXPECT_EQ(chain.size(), 1u);
    EXPECT_TRUE(chain[0].function.starts_with("prog!fn_")) << chain[0].function;
    EXPECT_NE(status_.problem.find("another build"), std::string::npos) << status_.problem;
  }
}

TEST_F(CompiledPrograms, MiniDebugInfoNamesLocalFunctions) {
  if (!have("g++") || !have("objcopy") || !have("xz"))
    GTEST_SKIP() << "skipped: no g++, objcopy or xz here";
  ASSERT_TRUE(in_dir("g++ -O2 prog.cpp -o prog"));
  uint64_t outer = offset_of("_Z5outeri");
  ASSERT_TRUE(
      in_dir("objcopy --only-keep-debug prog mini && xz -f mini && strip prog && "
             "objcopy --add-section .gnu_debugdata=mini.xz prog"));
  auto chain = locate(outer + 2);
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].function, "outer(int)");
  EXPECT_EQ(chain[0].system_name, "_Z5outeri");
  EXPECT_EQ(status_.source, "gnu_debugdata");
}

TEST_F(CompiledPrograms, SharedDebugFilesOfDwz) {
  if (!have("g++") || !have("dwz")) GTEST_SKIP() << "skipped: no g++ or dwz here";
  ASSERT_TRUE(
      in_dir("g++ -O2 -g prog.cpp -o prog && cp prog second && dwz -m shared.debug prog second"));
  expect_known_chain(offset_of("spot"));
}

TEST_F(CompiledPrograms, SourceTextOfTheKnownLine) {
  SourceText source;
  std::string file = dir_ / "prog.cpp";
  EXPECT_EQ(source.source_line(file, 10), "  return y + Box::inner(y);");
  EXPECT_EQ(source.source_lines(file, 16, 99).size(), 3u);
  EXPECT_EQ(source.source_line(file, 0), std::nullopt);
  EXPECT_EQ(source.source_line(file, 1000), std::nullopt);
  EXPECT_EQ(source.source_line("prog.cpp", 1), std::nullopt);
  EXPECT_EQ(source.source_line("/etc/passwd", 1), std::nullopt)
      << "only what looks like source is opened";
  std::ofstream(dir_ / "odd.c") << "a\x1b[31mb" << std::string(1000, 'x') << "\nok";
  auto odd = source.source_line(dir_ / "odd.c", 1);
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->find('\x1b'), std::string::npos);
  EXPECT_LT(odd->size(), 500u);
  EXPECT_EQ(source.source_line(dir_ / "odd.c", 2), "ok");
}

TEST_F(CompiledPrograms, TheCacheAnswersTheSecondTimeAndSurvivesDamage) {
  if (!have("g++")) GTEST_SKIP() << "skipped: no g++ here";
  ASSERT_TRUE(in_dir("g++ -O2 -g -Wl,--build-id prog.cpp -o prog"));
  uint64_t spot = offset_of("spot");
  Options options;
  options.cache_dir = dir_ / "cache";
  expect_known_chain(spot, options);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(options.cache_dir)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1u);
  std::string good = read_file(files[0]);
  auto written = fs::last_write_time(files[0]);
  expect_known_chain(spot, options);
  EXPECT_EQ(fs::last_write_time(files[0]), written) << "nothing new was learnt, nothing is written";
  // The cache is what answers: with the unit's part exchanged for rubbish of the right size it is
  // rebuilt.
  std::mt19937 random(9);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    for (int k = 0; k < 8; ++k) bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    if (i % 3 == 0) bad.resize(random() % bad.size());
    std::ofstream(files[0], std::ios::binary) << bad;
    expect_known_chain(spot, options);
  }
}

TEST_F(CompiledPrograms, MutatedFilesNeverCrash) {
  if (!have("g++")) GTEST_SKIP() << "skipped: no g++ here";
  std::vector<std::string> seeds;
  for (const char* flags : {"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz=zlib"}) {
    ASSERT_TRUE(in_dir(std::string("g++ -O2 -g -nostdlib -nostartfiles -Wl,-e,main ") + flags +
                       " prog.cpp -o prog"));
    seeds.push_back(read_file(program()));
    EXPECT_GT(exercise_elf_readers(seeds.back()), 0u);
  }
  std::mt19937_64 random(17);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = seeds[random() % seeds.size()];
    for (size_t k = 1 + random() % 16; k > 0; --k) {
      size_t at = random() % bad.size();
      // Interesting numbers as often as random ones: limits are where mistakes are.
      static constexpr uint64_t kEdges[] = {0,      1,          0x7f,       0x80,      0xff,
                                            0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX};
      uint64_t value = random() % 2 ? kEdges[random() % std::size(kEdges)] : random();
      size_t width = std::min<size_t>(size_t{1} << random() % 4, bad.size() - at);
      std::memcpy(bad.data() + at, &value, width);
    }
    if (random() % 8 == 0) bad.resize(random() % bad.size());
    (void)exercise_elf_readers(std::move(bad));
  }
}

}  // namespace
}  // namespace assay::symbol
