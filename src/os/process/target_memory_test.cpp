#include "os/process/target_memory.h"

#include <csignal>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/traced_thread.h"

namespace assay::os {
namespace {

constexpr size_t kPage = 4096;

// A readable and writable page, and after it one that nobody may touch.
char* page_before_a_hole() {
  auto* at = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(at + kPage, kPage, PROT_NONE);
  return at;
}

uint64_t address_of(const void* at) {
  return reinterpret_cast<uint64_t>(at);
}

TEST(TargetMemory, ReadsUpToTheEndOfTheMapping) {
  char* page = page_before_a_hole();
  std::memset(page, 'a', kPage);
  std::vector<std::byte> copy(3 * kPage);
  EXPECT_EQ(read_target(getpid(), address_of(page) + 100, copy), kPage - 100);
  EXPECT_EQ(copy[0], std::byte{'a'});
  char byte = 0;
  EXPECT_TRUE(read_target_whole(getpid(), address_of(page), &byte, 1));
  EXPECT_FALSE(read_target_whole(getpid(), address_of(page) + kPage, &byte, 1));
  std::vector<std::byte> few(64);
  EXPECT_EQ(read_target(getpid(), UINT64_MAX - 8, few), 0u) << "the address space ends";
  munmap(page, 2 * kPage);
}

TEST(TargetMemory, TextsEndAtTheirNulOrTheMapping) {
  char* page = page_before_a_hole();
  std::memcpy(page + kPage - 4, "long", 4);
  std::memcpy(page, "short\0rest", 10);
  EXPECT_EQ(read_target_text(getpid(), address_of(page), 512), "short");
  EXPECT_EQ(read_target_text(getpid(), address_of(page) + kPage - 4, 512), "long");
  EXPECT_EQ(read_target_text(getpid(), address_of(page), 3), "sho");
  munmap(page, 2 * kPage);
}

TEST(TargetMemory, WritesWhatIsWritable) {
  int value = 1;
  int other = 7;
  EXPECT_TRUE(write_target(getpid(), address_of(&value), &other, sizeof other));
  EXPECT_EQ(value, 7);
  static const int kConstant = 3;
  EXPECT_FALSE(write_target(getpid(), address_of(&kConstant), &other, sizeof other));
}

TEST(TargetMemory, TheFileReadsAndWrites) {
  volatile int value = 5;
  auto memory = TargetMemory::open(getpid(), TargetMemory::Access::write);
  ASSERT_TRUE(memory) << memory.error().what;
  int copy = 0;
  uint64_t at = address_of(const_cast<int*>(&value));
  EXPECT_TRUE(memory->read(at, &copy, sizeof copy));
  EXPECT_EQ(copy, 5);
  copy = 9;
  EXPECT_TRUE(memory->write(at, &copy, sizeof copy));
  EXPECT_EQ(value, 9);
  EXPECT_FALSE(memory->read(0, &copy, sizeof copy));
  EXPECT_FALSE(TargetMemory::open(getpid(), TargetMemory::Access::read, "/nowhere"));
}

// A child that waits for signals until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(TracedThread, RegistersMasksAndCodeGoInAndOut) {
  Child child;
  if (!seize_thread(child.pid(), 0)) GTEST_SKIP() << "skipped: ptrace is not allowed here";
  user_regs_struct registers{};
  EXPECT_FALSE(read_registers(child.pid(), registers)) << "it has not stopped";
  ASSERT_TRUE(interrupt_thread(child.pid()));
  ASSERT_EQ(waitpid(child.pid(), nullptr, __WALL), child.pid());
  ASSERT_TRUE(read_registers(child.pid(), registers));
  EXPECT_NE(registers.rip, 0u);
  user_regs_struct changed = registers;
  changed.r15 = 0x1234;
  ASSERT_TRUE(write_registers(child.pid(), changed));
  user_regs_struct again{};
  ASSERT_TRUE(read_registers(child.pid(), again));
  EXPECT_EQ(again.r15, 0x1234u);

  std::vector<uint8_t> vectors;
  ASSERT_TRUE(read_vector_registers(child.pid(), 16 << 10, vectors));
  EXPECT_GE(vectors.size(), 512u) << "the legacy area at least";
  EXPECT_TRUE(write_vector_registers(child.pid(), vectors));

  uint64_t mask = 0;
  ASSERT_TRUE(write_signal_mask(child.pid(), uint64_t{1} << (SIGUSR1 - 1)));
  ASSERT_TRUE(read_signal_mask(child.pid(), mask));
  EXPECT_EQ(mask, uint64_t{1} << (SIGUSR1 - 1));

  // The code of this function, in the child alone.
  auto code = reinterpret_cast<uint64_t>(&address_of) & ~uint64_t{7};
  uint64_t word = 0, before = 0, ours = 0;
  ASSERT_TRUE(read_target_whole(child.pid(), code, &before, sizeof before));
  ASSERT_TRUE(write_code_word(child.pid(), code, ~before));
  ASSERT_TRUE(read_target_whole(child.pid(), code, &word, sizeof word));
  EXPECT_EQ(word, ~before);
  ASSERT_TRUE(read_target_whole(getpid(), code, &ours, sizeof ours));
  EXPECT_EQ(ours, before);

  EXPECT_LT(read_seccomp_filter(child.pid(), 0, nullptr), 0) << "it has none, or root is needed";
  EXPECT_TRUE(resume_thread(child.pid(), Resume::detach));
  EXPECT_FALSE(read_registers(child.pid(), registers)) << "it is not ours any more";
}

}  // namespace
}  // namespace assay::os
