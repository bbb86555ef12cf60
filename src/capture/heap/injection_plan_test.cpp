// What the injector refuses, and with which words: a fake /proc, and programs made for the purpose.
#include "capture/heap/injection_plan.h"

#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "base/unique_fd.h"
#include "capture/heap/elf_symbols.h"
#include "capture/heap/testing/small_elf.h"
#include "capture/heap/testing/traced_child.h"
#include "capture/heap/way_back.h"
#include "os/fake_tree.h"

namespace assay::capture {
namespace {

using fake::SmallElf;
using ::testing::HasSubstr;

constexpr pid_t kPid = 4711;

class InjectionPlanTest : public ::testing::Test {
 protected:
  InjectionPlanTest() {
    program().write(program_path());
    os::add_process(tree_, {.pid = kPid,
                            .comm = "server",
                            .exe = program_path(),
                            .start_ticks = 77,
                            .threads = {{4712, "worker"}}});
    set_status("");
    set_state('S');
    tree_.write("4711/maps", "");
  }
  static SmallElf program() { return {}; }
  std::string program_path() const { return files_ / "program"; }

  void set_state(char state) {
    std::string line = os::fake_stat_line(kPid, "server", 1, 2, 77);
    line[line.find(") S") + 2] = state;
    tree_.write("4711/stat", line);
  }
  // The same of the process and of both its threads.
  void set_status(const std::string& more, const std::string& of_worker = "same") {
    std::string text = "Name:\tserver\nTgid:\t4711\nPid:\t4711\nPPid:\t1\nUid:\t0\t0\t0\t0\n";
    tree_.write("4711/status", text + more);
    tree_.write("4711/task/4711/status", text + more);
    tree_.write("4711/task/4712/status", text + (of_worker == "same" ? more : of_worker));
  }
  void expect_refusal(const std::string& what, const std::string& remedy = "") {
    auto plan = plan_injection(proc_, kPid);
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error().what, HasSubstr(what));
    EXPECT_THAT(plan.error().remedy, HasSubstr(remedy));
  }

  TemporaryDirectory files_;
  os::FakeTree tree_;
  os::ProcFs proc_{tree_.root()};
};

TEST_F(InjectionPlanTest, AProcessThatCannotRunIsRefused) {
  set_state('T');
  expect_refusal("is stopped: nothing in it would run", "kill -CONT 4711");
  set_state('t');
  expect_refusal("is stopped", "kill -CONT 4711");
  set_state('Z');
  expect_refusal("process 4711 has ended");
  tree_.remove("4711");
  expect_refusal("process 4711 is gone");
}

TEST_F(InjectionPlanTest, AnotherProcessUnderTheSameNumberIsRefused) {
  auto plan = plan_injection(proc_, kPid, 78);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().what, HasSubstr("is gone"));
  InjectionPlan earlier;
  earlier.pid = kPid;
  earlier.start_ticks = 77;
  EXPECT_TRUE(check_same_process(proc_, earlier));
  earlier.start_ticks = 76;
  EXPECT_FALSE(check_same_process(proc_, earlier));
}

TEST_F(InjectionPlanTest, ATracedProcessIsRefused) {
  set_status("TracerPid:\t99\n");
  expect_refusal("is traced already, by process 99", "end the debugger");
}

TEST_F(InjectionPlanTest, SeccompsStrictModeAndIgnoredFaultsAreRefused) {
  set_status("Seccomp:\t1\n");
  expect_refusal("seccomp's strict mode");
  set_status(fmt::format("SigIgn:\t{:016x}\n", uint64_t{1} << (SIGTRAP - 1)));
  expect_refusal("ignores SIGSEGV or SIGTRAP");
  set_status(fmt::format("SigIgn:\t{:016x}\n", uint64_t{1} << (SIGSEGV - 1)));
  expect_refusal("ignores SIGSEGV or SIGTRAP");
}

// The filters of one thread are asked, so all threads must have the same ones.
TEST_F(InjectionPlanTest, ThreadsWithDifferentFiltersAreRefused) {
  set_status("Seccomp:\t2\nSeccomp_filters:\t1\n", "Seccomp:\t2\nSeccomp_filters:\t2\n");
  expect_refusal("its threads have different ones", "assay heap -- COMMAND");
  set_status("Seccomp:\t0\nSeccomp_filters:\t0\n", "Seccomp:\t2\nSeccomp_filters:\t1\n");
  expect_refusal("its threads have different ones");
  set_status("Seccomp:\t2\nSeccomp_filters:\t1\n");
  expect_refusal("has room for injected calls");  // equal ones are asked later
}

TEST_F(InjectionPlanTest, ProgramsThatCannotLoadTheSamplerAreRefused) {
  SmallElf elf;
  elf.interpreter = "";
  elf.write(program_path());
  expect_refusal("is linked statically", "link it dynamically");
  elf.interpreter = "/lib/ld-musl-x86_64.so.1";
  elf.write(program_path());
  expect_refusal("uses musl", "CC=musl-gcc");
  elf = {.machine = EM_AARCH64};
  elf.write(program_path());
  expect_refusal("of another architecture", "use an assay built for it");
  std::ofstream(program_path()) << "#!/bin/sh\n";
  expect_refusal("it is no ELF file");
}

TEST_F(InjectionPlanTest, AnAllocatorInTheProgramIsNamedWithItsOwnProfiler) {
  struct Case {
    const char* function;
    const char* what;
    const char* remedy;
  };
  for (const Case& one : {Case{"mallctl", "it is jemalloc", "MALLOC_CONF=prof:true"},
                          Case{"je_mallctl", "it is jemalloc", "MALLOC_CONF=prof:true"},
                          Case{"MallocExtension_GetHeapSample", "it is tcmalloc", "HEAPPROFILE="},
                          Case{"printf", "has its own malloc linked in", "shared library"}}) {
    SmallElf elf;
    elf.functions = {{"malloc", 0x401100}, {one.function, 0x401200}};
    elf.write(program_path());
    expect_refusal(one.what, one.remedy);
  }
  SmallElf elf;
  elf.functions = {{"malloc", 0}};
  elf.write(program_path());
  expect_refusal("has room for injected calls");  // it only asks for libc's
}

TEST_F(InjectionPlanTest, AProgramThatMayNotBeReadSaysWhoMay) {
  tree_.remove("4711/exe");
  expect_refusal("cannot be read", "sudo assay heap");
}

std::string map_line(uint64_t start, const std::string& path, uint64_t inode, uint64_t offset = 0) {
  return fmt::format("{:x}-{:x} r-xp {:08x} 00:01 {} {}\n", start, start + 0x1000, offset, inode,
                     path);
}

TEST_F(InjectionPlanTest, TheSamplerAndItsChannelAreTold) {
  EXPECT_EQ(find_sampler(proc_, kPid), 0u);
  EXPECT_FALSE(find_channel(proc_, kPid));
  tree_.write("4711/maps", map_line(0x1000, "/usr/bin/server", 5) +
                               map_line(0x5000, "/memfd:assay-heap-channel (deleted)", 6) +
                               map_line(0x7000, "/memfd:assay-heap (deleted)", 7));
  EXPECT_EQ(find_sampler(proc_, kPid), 0x7000u) << "not the channel";
  auto channel = find_channel(proc_, kPid);
  ASSERT_TRUE(channel);
  EXPECT_EQ(channel->inode, 6u);
  tree_.write("4711/maps", map_line(0x3000, "/opt/libassay_heap.so", 8));
  EXPECT_EQ(find_sampler(proc_, kPid), 0x3000u) << "preloaded";
  tree_.write("4711/maps", map_line(0x3000, "/opt/libassay_heap.so", 8, 0x2000));
  EXPECT_EQ(find_sampler(proc_, kPid), 0u) << "its beginning is not mapped";
}

TEST_F(InjectionPlanTest, TheSamplersFunctionsAreOffsets) {
  SmallElf library{.entry = 0, .first_vaddr = 0x10000};
  library.functions = {{"assay_heap_attach", 0x10400}, {"assay_heap_detach", 0x10500}};
  library.write(files_ / "libassay_heap.so");
  auto functions = read_sampler_functions(files_ / "libassay_heap.so");
  ASSERT_TRUE(functions) << functions.error().text();
  EXPECT_EQ(functions->attach, 0x400u);
  EXPECT_EQ(functions->detach, 0x500u);
  library.functions.pop_back();
  library.write(files_ / "libassay_heap.so");
  auto old = read_sampler_functions(files_ / "libassay_heap.so");
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().what, HasSubstr("has no function assay_heap_detach"));
  EXPECT_FALSE(read_sampler_functions(files_ / "nothing"));
  auto none = read_mapped_functions(proc_, kPid);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().what, HasSubstr("has no sampler in it"));
}

TEST_F(InjectionPlanTest, WhatIsLaunchedIsCheckedByItsFile) {
  EXPECT_TRUE(check_launchable(program_path()));
  EXPECT_TRUE(check_launchable(files_ / "nothing")) << "starting it tells";
  SmallElf elf;
  elf.interpreter = "";
  elf.write(program_path());
  auto refused = check_launchable(program_path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr(program_path()));
  EXPECT_THAT(refused.error().what, HasSubstr("is linked statically"));
}

TEST(InjectionPlan, OfALivingProcessHasItsAddresses) {
  if (kSanitized) GTEST_SKIP() << "skipped: a sanitizer links its own malloc into the program";
  fake::TracedChild child(fake::sleep_undisturbed);
  auto plan = plan_injection(os::ProcFs(), child.pid());
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_THAT(plan->allocator, HasSubstr("libc.so"));
  EXPECT_EQ(plan->malloc_entry, reinterpret_cast<uint64_t>(&malloc));
  EXPECT_EQ(plan->library_base, 0u);
  EXPECT_EQ(plan->quiet_signal, SIGURG);
  std::array<uint8_t, kLandingBytes> room;
  std::memcpy(room.data(), reinterpret_cast<const void*>(plan->landing), room.size());
  EXPECT_EQ(room, decltype(room){}) << "nothing is there in this process, which is the same";
}

ElfFacts facts_of(const SmallElf& elf, const std::vector<std::string>& wanted) {
  TemporaryDirectory directory;
  elf.write(directory / "file");
  UniqueFd fd(::open((directory / "file").c_str(), O_RDONLY | O_CLOEXEC));
  auto facts = read_elf_facts(fd.get(), wanted);
  EXPECT_TRUE(facts) << facts.error().text();
  return facts ? *facts : ElfFacts{};
}

TEST(ElfFacts, AreThoseThatWereAskedFor) {
  SmallElf elf;
  elf.functions = {{"malloc", 0x10}, {"mallocator", 0x20}, {"dlopen", 0}, {"free", 0x30}};
  ElfFacts facts = facts_of(elf, {"malloc", "dlopen"});
  EXPECT_TRUE(facts.is_64_bit);
  EXPECT_TRUE(facts.is_program);
  EXPECT_EQ(facts.machine, EM_X86_64);
  EXPECT_EQ(facts.interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(facts.functions, (std::map<std::string, uint64_t>{{"malloc", 0x10}}))
      << "dlopen is only asked for by the file";
  EXPECT_FALSE(facts_of({.entry = 0}, {}).is_program);
}

// A hostile file may claim anything: what is not there is not read.
TEST(ElfFacts, OfACutFileAreNone) {
  TemporaryDirectory directory;
  std::string whole = SmallElf{.functions = {{"malloc", 0x10}}}.bytes();
  for (size_t size = 0; size < whole.size(); size += 7) {
    std::ofstream(directory / "cut", std::ios::binary) << whole.substr(0, size);
    UniqueFd fd(::open((directory / "cut").c_str(), O_RDONLY | O_CLOEXEC));
    auto facts = read_elf_facts(fd.get(), {"malloc"});
    if (facts) {
      EXPECT_TRUE(facts->functions.empty()) << size;
    }
  }
}

}  // namespace
}  // namespace assay::capture
