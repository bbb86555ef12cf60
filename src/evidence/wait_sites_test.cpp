#include "evidence/wait_sites.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace assay::evidence {
namespace {

TEST(WaitSites, KernelEntryFunctionsNameTheirSystemCall) {
  EXPECT_EQ(syscall_of_kernel_function("__x64_sys_futex"), SYS_futex);
  EXPECT_EQ(syscall_of_kernel_function("__x64_sys_epoll_wait"), SYS_epoll_wait);
  EXPECT_EQ(syscall_of_kernel_function("__se_sys_read"), SYS_read);
  EXPECT_EQ(syscall_of_kernel_function("__do_sys_clock_nanosleep"), SYS_clock_nanosleep);
}

TEST(WaitSites, FunctionsThatOnlyOneCallLeadsToNameItToo) {
  EXPECT_EQ(syscall_of_kernel_function("do_futex"), SYS_futex);
  EXPECT_EQ(syscall_of_kernel_function("do_futex.isra.0"), SYS_futex) << "clones count";
  EXPECT_EQ(syscall_of_kernel_function("hrtimer_nanosleep"), SYS_clock_nanosleep);
}

TEST(WaitSites, OtherFunctionsTellNothing) {
  for (const char* function :
       {"schedule", "exc_page_fault", "__x64_sys_", "__x64_sys_no_such_call", "", "io_schedule"}) {
    EXPECT_EQ(syscall_of_kernel_function(function), model::kNoSyscall) << function;
  }
}

TEST(WaitSites, KnowsWhichCallsWaitOnADescriptor) {
  EXPECT_TRUE(takes_descriptor(SYS_read));
  EXPECT_TRUE(takes_descriptor(SYS_epoll_wait));
  EXPECT_TRUE(takes_descriptor(SYS_accept4));
  EXPECT_FALSE(takes_descriptor(SYS_futex));
  EXPECT_FALSE(takes_descriptor(SYS_poll));
  EXPECT_FALSE(takes_descriptor(model::kNoSyscall));
}

}  // namespace
}  // namespace assay::evidence
