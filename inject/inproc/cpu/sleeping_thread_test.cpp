// Stacks of sleeping threads, read without interrupting them.
#include "inject/inproc/cpu/sleeping_thread.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/stack_walk.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/http/port_handover.h"

namespace assay::inproc {
namespace {

__attribute__((noinline)) void read_one_byte(int fd) {
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 1);
  asm volatile("");
}

class SleepingThreadTest : public testing::Test {
 protected:
  void SetUp() override {
    inject::prepare_stack_walk();
    ASSERT_EQ(pipe(pipe_), 0);
  }
  void TearDown() override {
    if (reader_.joinable()) {
      EXPECT_EQ(write(pipe_[1], "x", 1), 1);
      reader_.join();
    }
    close(pipe_[0]);
    close(pipe_[1]);
  }
  // Until it sleeps in read.
  SleepingThread start_reader() {
    reader_ = std::thread([this] {
      tid_ = current_tid();
      read_one_byte(pipe_[0]);
    });
    SleepingThread found;
    while (tid_ == 0 || !find_sleeping_thread(tid_, found) || found.call != SYS_read)
      std::this_thread::yield();
    return found;
  }

  int pipe_[2] = {-1, -1};
  std::atomic<int> tid_ = 0;
  std::thread reader_;
};

TEST_F(SleepingThreadTest, IsFoundInItsCallAndWalkedToWhoMadeIt) {
  SleepingThread found = start_reader();
  EXPECT_FALSE(found.is_ended_by_signals());
  EXPECT_EQ(found.first_argument, static_cast<uint64_t>(pipe_[0]));
  Arena arena;
  const uintptr_t* pcs = nullptr;
  uint32_t frames = walk_sleeping_thread(found, arena, pcs);
  ASSERT_GE(frames, 1U);
  EXPECT_EQ(pcs[0], found.pc);
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  // libc's read saves no frame pointer and needs none: its caller at least is known.
  auto function = reinterpret_cast<uintptr_t>(read_one_byte);
  ASSERT_GE(frames, 2U);
  EXPECT_GT(pcs[1], function);
  EXPECT_LT(pcs[1], function + 400);
#endif
}

TEST_F(SleepingThreadTest, OneThatHasGoneOnIsNotWalked) {
  SleepingThread found = start_reader();
  found.sp += 16;  // as if it slept in another place now
  Arena arena;
  const uintptr_t* pcs = nullptr;
  EXPECT_EQ(walk_sleeping_thread(found, arena, pcs), 0U);
}

TEST_F(SleepingThreadTest, ARunningOrAMissingOneIsNone) {
  std::atomic<bool> done = false;
  std::thread runner([&] {
    for (tid_ = current_tid(); !done;) continue;
  });
  while (tid_ == 0) std::this_thread::yield();
  SleepingThread found;
  EXPECT_FALSE(find_sleeping_thread(tid_, found));
  done = true;
  runner.join();
  EXPECT_FALSE(find_sleeping_thread(999'999'999, found));
}

TEST(PortHandover, AProgramThatRunsHasWorkOfItsOwn) {
  EXPECT_EQ(host_occupation(), Occupation::works);
}

}  // namespace
}  // namespace assay::inproc
