// Counting the system calls of this process on a real kernel: by BPF and by tracepoints.
#include "capture/stat/syscall_counter.h"

#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::capture {
namespace {

constexpr uint64_t kOwn = 3000, kOfChild = 500;

void call(uint32_t number, uint64_t times) {
  for (uint64_t i = 0; i < times; ++i) syscall(number);
}

TEST(SyscallCounter, BpfCountsByNumberAndFollowsChildren) {
  auto counter = open_bpf_syscall_counter({getpid()});
  if (!counter) GTEST_SKIP() << "skipped: " << counter.error().what;
  SyscallCalls before = (*counter)->read();
  call(SYS_getppid, kOwn);
  pid_t child = fork();
  if (child == 0) {
    call(SYS_getppid, kOfChild);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  SyscallCalls after = (*counter)->read();
  EXPECT_EQ(after.by_number[SYS_getppid] - before.by_number[SYS_getppid], kOwn + kOfChild);
  EXPECT_GE(after.all - before.all, kOwn + kOfChild);
}

TEST(SyscallCounter, TracepointsCountTheSum) {
  auto counter =
      open_traced_syscall_counter(os::real_counter_kernel(), {gettid()}, number_in_tracefs);
  if (!counter) GTEST_SKIP() << "skipped: " << counter.error().what;
  SyscallCalls before = (*counter)->read();
  call(SYS_getppid, kOwn);
  SyscallCalls after = (*counter)->read();
  // Reading takes a call for each event itself.
  EXPECT_GE(after.all - before.all, kOwn);
  EXPECT_LT(after.all - before.all, kOwn + 200);
}

TEST(SyscallCounter, ThreadsThatEndedKeepTheirCalls) {
  for (bool bpf : {true, false}) {
    auto counter =
        bpf ? open_bpf_syscall_counter({getpid()})
            : open_traced_syscall_counter(os::real_counter_kernel(), {gettid()}, number_in_tracefs);
    if (!counter) GTEST_SKIP() << "skipped: " << counter.error().what;
    SyscallCalls before = (*counter)->read();
    for (int i = 0; i < 10; ++i) std::thread([] { call(SYS_getppid, kOwn / 10); }).join();
    SyscallCalls after = (*counter)->read();
    EXPECT_GE(after.all - before.all, kOwn) << (*counter)->source();
  }
}

}  // namespace
}  // namespace assay::capture
