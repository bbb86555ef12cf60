#include "evidence/wait_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "evidence/testing/fake_stages.h"
#include "os/fake_tree.h"

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

class WaitSitesOfTarget : public ::testing::Test {
 protected:
  static constexpr model::ModuleId kKernel{0};
  static constexpr pid_t kPid = 70;

  // A switch-out in these kernel functions, leaf first, with this first argument of a system call.
  capture::WaitSite site_in(std::vector<std::string> functions, uint64_t rdi) {
    std::vector<uint64_t> chain;
    for (const std::string& function : functions) {
      uint64_t address = 0x1000 * (chain.size() + 1 + 10 * ++used_);
      symbolizer_.name(kKernel, address - 1, function);
      chain.push_back(address);
    }
    capture::SampleRecord sample;
    sample.kernel_chain = chain;
    sample.registers.set(model::kRegRdi, rdi);
    return sites_.site(kPid, sample, {5}, 1);
  }

  os::FakeTree tree_;
  os::ProcFs proc_{tree_.root()};
  testing::FakeSymbolizer symbolizer_;
  std::vector<std::pair<pid_t, uint64_t>> futexes_;
  WaitSites sites_{proc_, symbolizer_, kKernel,
                   [this](pid_t pid, uint64_t address) { futexes_.emplace_back(pid, address); }};
  uint64_t used_ = 0;
};

TEST_F(WaitSitesOfTarget, TheOutermostFunctionThatTellsACallNamesIt) {
  capture::WaitSite site = site_in(
      {"schedule", "futex_wait_queue", "do_futex", "__x64_sys_futex", "do_syscall_64"}, 0x7f01);
  EXPECT_EQ(site.syscall, SYS_futex);
  EXPECT_EQ(site.arg, 0x7f01u);
  EXPECT_EQ(site.stack.value, 5u);
  EXPECT_EQ(site.fd_kind, model::FdKind::none);
  EXPECT_THAT(futexes_, ::testing::ElementsAre(std::pair(kPid, uint64_t{0x7f01})));
}

TEST_F(WaitSitesOfTarget, ACallInsideAnotherIsTheOuterOnes) {
  // A read from a file whose page fault waits on a futex would still be a read.
  EXPECT_EQ(site_in({"schedule", "do_futex", "ksys_read"}, 3).syscall, SYS_read);
  EXPECT_TRUE(futexes_.empty());
}

TEST_F(WaitSitesOfTarget, APageFaultIsNoCall) {
  capture::WaitSite site = site_in({"io_schedule", "filemap_fault", "exc_page_fault"}, 3);
  EXPECT_EQ(site.syscall, model::kNoSyscall);
  EXPECT_EQ(site.arg, 0u);
  EXPECT_EQ(site_in({}, 3).syscall, model::kNoSyscall) << "hidden kernel addresses";
}

TEST_F(WaitSitesOfTarget, ADescriptorIsToldByItsKindUntilItsProcessIsForgotten) {
  tree_.link("70/fd/3", "pipe:[99]");
  EXPECT_EQ(site_in({"schedule", "ksys_read"}, 3).fd_kind, model::FdKind::pipe);
  tree_.link("70/fd/3", "anon_inode:[eventpoll]");
  EXPECT_EQ(site_in({"schedule", "ksys_read"}, 3).fd_kind, model::FdKind::pipe) << "asked just now";
  sites_.forget(kPid);
  EXPECT_EQ(site_in({"schedule", "ksys_read"}, 3).fd_kind, model::FdKind::epoll);
}

TEST_F(WaitSitesOfTarget, AnArgumentThatIsNoDescriptorHasNoKind) {
  tree_.link("70/fd/3", "pipe:[99]");
  EXPECT_EQ(site_in({"schedule", "ksys_read"}, 0x1'0000'0003).fd_kind, model::FdKind::none);
}

TEST_F(WaitSitesOfTarget, SnapshotsAndRegistersTellTheCallThemselves) {
  tree_.link("70/fd/7", "socket:[1]");
  os::ThreadSnapshot snapshot;
  snapshot.syscall.number = SYS_futex;
  snapshot.syscall.args[0] = 0x55;
  EXPECT_EQ(sites_.site(kPid, snapshot, {1}).syscall, SYS_futex);
  EXPECT_EQ(futexes_.back().second, 0x55u);
  snapshot.syscall.number = -1;
  EXPECT_EQ(sites_.site(kPid, snapshot, {1}).syscall, model::kNoSyscall);
  snapshot.syscall.number = 1'000'000;  // what a target's file could claim
  EXPECT_EQ(sites_.site(kPid, snapshot, {1}).syscall, model::kNoSyscall);
  EXPECT_EQ(sites_.site(kPid, SYS_epoll_wait, 9, {1}, 1).arg, 9u);
  EXPECT_EQ(sites_.site(kPid, model::kNoSyscall, 9, {1}, 1).arg, 0u);
}

}  // namespace
}  // namespace assay::evidence
