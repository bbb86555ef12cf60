#include "os/process/thread_snapshot.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::os {
namespace {

// A thread that blocks in read(2) on a pipe until the test lets it go.
class BlockedReader {
 public:
  BlockedReader() {
    if (pipe(ends_) != 0) throw std::runtime_error("pipe");
    thread_ = std::thread([this] {
      tid_ = static_cast<pid_t>(::syscall(SYS_gettid));
      char byte = 0;
      volatile uint64_t canary = 0x0123456789abcdef;
      while (::read(ends_[0], &byte, 1) < 0) {
      }
      (void)canary;
    });
  }
  ~BlockedReader() {
    char byte = 1;
    while (::write(ends_[1], &byte, 1) < 0) {
    }
    thread_.join();
    close(ends_[0]);
    close(ends_[1]);
  }
  pid_t tid() const { return tid_; }
  int read_fd() const { return ends_[0]; }

 private:
  int ends_[2];
  std::thread thread_;
  std::atomic<pid_t> tid_{0};
};

TEST(ThreadSnapshot, ShowsTheSyscallAndTheStackOfABlockedThread) {
  BlockedReader reader;
  ProcFs proc;
  std::optional<ThreadSnapshot> snapshot;
  // The thread needs a moment to block; try for as long as a loaded machine may need.
  for (int i = 0; i < 500 && !snapshot; ++i) {
    usleep(10'000);
    if (reader.tid() != 0) snapshot = snapshot_blocked_thread(proc, getpid(), reader.tid(), 4096);
    if (snapshot && snapshot->syscall.number != SYS_read) snapshot.reset();
  }
  if (!snapshot) GTEST_SKIP() << "skipped: /proc/PID/task/TID/syscall is not readable here";
  EXPECT_EQ(snapshot->syscall.args[0], static_cast<uint64_t>(reader.read_fd()));
  ASSERT_GE(snapshot->stack.size(), 256u);
  uint64_t canary = 0x0123456789abcdef;
  auto* begin = reinterpret_cast<const char*>(snapshot->stack.data());
  EXPECT_NE(memmem(begin, snapshot->stack.size(), &canary, sizeof canary), nullptr);
}

TEST(ThreadSnapshot, OfARunningOrMissingThreadThereIsNone) {
  ProcFs proc;
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    while (!stop) {
    }
  });
  while (tid == 0) std::this_thread::yield();
  EXPECT_FALSE(snapshot_blocked_thread(proc, getpid(), tid, 4096));
  stop = true;
  spinner.join();
  EXPECT_FALSE(snapshot_blocked_thread(proc, 1 << 30, 1 << 30, 4096));
}

}  // namespace
}  // namespace assay::os
