#include "os/process/binary_facts.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "os/fake_tree.h"

namespace assay::os {
namespace {

TEST(Producer, ReadsWhatGccRecords) {
  Producer release = parse_producer("GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2");
  EXPECT_EQ(release.compiler, "GNU C++17 12.2.0");
  EXPECT_EQ(release.flags, "-mtune=generic -march=x86-64 -g -O2");
  EXPECT_EQ(release.optimisation, Optimisation::optimised);
  EXPECT_EQ(release.frame_pointers, FramePointers::omitted);
  Producer plain = parse_producer("GNU C17 12.2.0 -mtune=generic -march=x86-64 -g");
  EXPECT_EQ(plain.optimisation, Optimisation::debug) << "no -O is -O0";
  EXPECT_EQ(plain.frame_pointers, FramePointers::kept);
  EXPECT_EQ(parse_producer("GNU C17 12 -O3 -O0").optimisation, Optimisation::debug)
      << "the last -O wins";
  EXPECT_EQ(parse_producer("GNU C17 12 -Og -g").optimisation, Optimisation::debug);
  EXPECT_EQ(parse_producer("GNU GIMPLE 12.2.0 -O2 -flto").optimisation, Optimisation::optimised);
  EXPECT_EQ(parse_producer("GNU C17 12 -O2 -fno-omit-frame-pointer").frame_pointers,
            FramePointers::kept);
}

TEST(Producer, SaysUnknownWhereFlagsAreNotRecorded) {
  for (const char* text :
       {"Debian clang version 14.0.6", "clang LLVM (rustc version 1.70.0)", "GNU C17 12.2.0", ""}) {
    Producer producer = parse_producer(text);
    EXPECT_EQ(producer.optimisation, Optimisation::unknown) << text;
    EXPECT_EQ(producer.frame_pointers, FramePointers::unknown) << text;
    EXPECT_EQ(producer.compiler, text);
  }
  EXPECT_EQ(parse_producer("clang version 14 /usr/bin/clang -O2 -g").optimisation,
            Optimisation::optimised);
  EXPECT_TRUE(parse_producer("GNU AS 2.40").assembler);
  EXPECT_EQ(parse_producer("Go cmd/compile go1.19.8; regabi").optimisation,
            Optimisation::optimised);
  EXPECT_EQ(parse_producer("Go cmd/compile go1.19.8; -N -l; regabi").optimisation,
            Optimisation::debug);
  EXPECT_LE(parse_producer(std::string(1'000'000, 'x')).compiler.size(), 4'096u);
}

// Compiles a small program; an empty path when there is no compiler at hand.
std::string compile(const FakeTree& tree, const std::string& name, const std::string& flags) {
  std::string source = tree.root() + "/" + name + ".cpp", program = tree.root() + "/" + name;
  std::ofstream(source) << "int work(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i * n;"
                           " return s; }\nint main(int n, char**) { return work(n); }\n";
  std::string command = "c++ " + flags + " -o " + program + " " + source + " 2>/dev/null";
  return std::system(command.c_str()) == 0 ? program : "";
}

Result<BinaryFacts> facts_of(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open {}", path);
  return read_binary_facts(fd.get());
}

TEST(BinaryFacts, TellsADebugBuildFromAnOptimisedOne) {
  FakeTree tree;
  std::string debug = compile(tree, "debug", "-g -O0 -pie -fPIE -Wl,--build-id=sha1");
  std::string release = compile(tree, "release", "-g -O2 -no-pie -fno-omit-frame-pointer");
  if (debug.empty() || release.empty()) GTEST_SKIP() << "skipped: no c++ on the path";
  auto first = facts_of(debug);
  ASSERT_TRUE(first) << first.error().what;
  EXPECT_EQ(first->build_id.size(), 40u);
  EXPECT_EQ(first->linkage, Linkage::pie);
  EXPECT_TRUE(first->has_symtab && first->has_dynsym && first->has_debug_info);
  EXPECT_EQ(first->units_read, 1u);
  EXPECT_EQ(first->optimisation, Optimisation::debug);
  EXPECT_TRUE(first->sanitizers.empty());
  EXPECT_EQ(first->limit, "");
  auto second = facts_of(release);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->linkage, Linkage::position_dependent);
  EXPECT_EQ(second->optimisation, Optimisation::optimised);
  EXPECT_EQ(second->frame_pointers, FramePointers::kept);
  EXPECT_NE(second->flags.find("-O2"), std::string::npos);
  EXPECT_NE(second->compiler.find("C++"), std::string::npos);
}

TEST(BinaryFacts, StrippedAndStaticAreSeenAndNothingIsGuessed) {
  FakeTree tree;
  std::string program = compile(tree, "stripped", "-O2 -s -static");
  if (program.empty()) GTEST_SKIP() << "skipped: no c++ with a static libc on the path";
  auto facts = facts_of(program);
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->stripped());
  EXPECT_FALSE(facts->has_debug_info);
  EXPECT_EQ(facts->linkage, Linkage::static_exe);
  EXPECT_EQ(facts->optimisation, Optimisation::unknown);
  EXPECT_EQ(facts->compiler, "");
}

TEST(BinaryFacts, SanitizersAndCompressedDebugInformationAreSeen) {
  FakeTree tree;
  std::string program = compile(tree, "asan", "-g -gz -O1 -fsanitize=address,undefined");
  if (program.empty()) GTEST_SKIP() << "skipped: no c++ with sanitizers on the path";
  auto facts = facts_of(program);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->sanitizers, (std::vector<std::string>{"address", "undefined"}));
  EXPECT_EQ(facts->optimisation, Optimisation::optimised) << "read through the compression";
}

TEST(BinaryFacts, WhatIsNoElfIsAnError) {
  FakeTree tree;
  tree.write("text", "#!/bin/sh\n");
  tree.write("empty", "");
  EXPECT_FALSE(facts_of(tree.root() + "/text"));
  EXPECT_FALSE(facts_of(tree.root() + "/empty"));
  EXPECT_FALSE(facts_of(tree.root()));
  EXPECT_FALSE(read_binary_facts(-1));
}

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_as_program(const std::string& bytes) {
  UniqueFd fd(::memfd_create("mutant", MFD_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  ASSERT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto facts = read_binary_facts(fd.get());
  if (facts) {
    EXPECT_LE(facts->units_read, kMaxUnits);
    EXPECT_LE(facts->build_id.size(), 128u);
  }
}

// Headers are hit more often than chance would: that is where sizes and offsets stand.
TEST(BinaryFacts, MutatedFilesNeverCrash) {
  FakeTree tree;
  std::vector<std::string> seeds;
  for (const char* flags : {"-g -O2", "-g -gz -O0", "-g -gdwarf-4 -static-pie"}) {
    std::string name = "seed" + std::to_string(seeds.size());
    std::string program = compile(tree, name, std::string(flags) + " -nostdlib -Wl,-e,main");
    if (!program.empty()) seeds.push_back(file_bytes(program));
  }
  if (seeds.empty()) GTEST_SKIP() << "skipped: no c++ on the path";
  std::mt19937_64 random(6'180'339);
  for (int round = 0; round < 3'000; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    uint64_t sections_at = 0;
    std::memcpy(&sections_at, bytes.data() + 0x28, sizeof sections_at);
    for (uint64_t changes = 1 + random() % 12; changes > 0; --changes) {
      size_t where = random() % bytes.size();
      if (random() % 3 == 0) where = random() % 64;
      if (random() % 3 == 0) where = sections_at + random() % (bytes.size() - sections_at);
      bytes[where] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    if (random() % 8 == 0) bytes.resize(1 + random() % bytes.size());
    read_as_program(bytes);
  }
}

// A copy of sleep(1) under a name of our own, so that its file can be replaced while it runs.
class Sleeper {
 public:
  explicit Sleeper(const std::string& program) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::execl(program.c_str(), "sleeper", "30", nullptr);
    ::_exit(127);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool runs(const std::string& program) const {  // up to 5 s for exec to happen
    for (int tries = 0; tries < 500; ++tries) {
      auto exe = ProcFs().exe(pid_);
      if (exe && exe->starts_with(program)) return true;
      ::usleep(10'000);
    }
    return false;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(RunningImageReal, ARebuildUnderARunningServerIsSeen) {
  FakeTree tree;
  std::string program = tree.root() + "/server";
  std::filesystem::copy_file("/bin/sleep", program);
  Sleeper server(program);
  ASSERT_TRUE(server.runs(program));

  auto fresh = read_running_image(server.pid());
  ASSERT_TRUE(fresh) << fresh.error().what;
  EXPECT_EQ(fresh->path, program);
  EXPECT_FALSE(fresh->replaced || fresh->deleted);

  std::filesystem::copy_file("/bin/sleep", tree.root() + "/same");
  std::filesystem::rename(tree.root() + "/same", program);
  auto reinstalled = read_running_image(server.pid());
  ASSERT_TRUE(reinstalled);
  EXPECT_FALSE(reinstalled->deleted);
  EXPECT_EQ(reinstalled->replaced, reinstalled->build_id.empty()) << "same build id, same program";

  std::filesystem::copy_file("/bin/true", tree.root() + "/new");
  std::filesystem::rename(tree.root() + "/new", program);
  auto rebuilt = read_running_image(server.pid());
  ASSERT_TRUE(rebuilt);
  EXPECT_TRUE(rebuilt->replaced);
  EXPECT_EQ(rebuilt->path, program);

  tree.remove("server");
  auto gone = read_running_image(server.pid());
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->deleted);
  EXPECT_FALSE(gone->replaced);
  EXPECT_FALSE(read_running_image(0x3fffff));
}

}  // namespace
}  // namespace assay::os
