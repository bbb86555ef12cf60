#include "os/machine/capabilities.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/fake_tree.h"

namespace assay::os {
namespace {

class CapabilitiesTest : public testing::Test {
 protected:
  Capabilities read() {
    return read_capabilities(
        {.proc = tree_.root() + "/proc", .sys = tree_.root() + "/sys", .root = tree_.root()});
  }
  FakeTree tree_;
};

TEST_F(CapabilitiesTest, AnEmptyMachineAllowsNothingAndIsUnknown) {
  Capabilities found = read();
  EXPECT_EQ(found.effective, 0u);
  EXPECT_FALSE(found.perf_event_paranoid);
  EXPECT_FALSE(found.ptrace_scope);
  EXPECT_FALSE(found.btf);
  EXPECT_FALSE(found.kernel_addresses);
  EXPECT_EQ(found.container, "");
  EXPECT_EQ(found.lockdown, "");
  EXPECT_EQ(found.pmu, "");
}

TEST_F(CapabilitiesTest, ReadsTheKernelsFiles) {
  tree_.write("proc/self/status",
              "Name:\tassay\nUid:\t1000\t1001\t0\t0\nNSpid:\t900\t7\nCapEff:\t0000004000080000\n"
              "Seccomp:\t2\nSeccomp_filters:\t1\n");
  tree_.write("proc/sys/kernel/perf_event_paranoid", "-1\n");
  tree_.write("proc/sys/kernel/kptr_restrict", "2\n");
  tree_.write("proc/sys/kernel/yama/ptrace_scope", "1\n");
  tree_.write("proc/sys/kernel/perf_event_mlock_kb", "516\n");
  tree_.write("proc/sys/kernel/perf_event_max_sample_rate", "25000\n");
  tree_.write("proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max open files            1024                 1048576              files     \n"
              "Max locked memory         unlimited            unlimited            bytes     \n");
  tree_.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  tree_.write("sys/kernel/btf/vmlinux", "\x9f\xeb\x01");
  tree_.directory("sys/bus/event_source/devices/cpu");
  tree_.write("proc/kallsyms", "0000000000000000 A first\nffffffff81000000 T _text\n");
  Capabilities found = read();
  EXPECT_EQ(found.uid, 1001u);
  EXPECT_TRUE(found.has(Capability::perfmon));
  EXPECT_TRUE(found.has(Capability::sys_ptrace));
  EXPECT_FALSE(found.has(Capability::sys_admin));
  EXPECT_TRUE(found.may_monitor());
  EXPECT_EQ(found.seccomp_mode, 2);
  EXPECT_EQ(found.pid_namespaces, 2u);
  EXPECT_EQ(found.perf_event_paranoid, -1);
  EXPECT_EQ(found.kptr_restrict, 2);
  EXPECT_EQ(found.ptrace_scope, 1);
  EXPECT_EQ(found.perf_mlock_bytes, 516u * 1024);
  EXPECT_EQ(found.max_sample_rate, 25000u);
  EXPECT_EQ(found.open_files_limit, 1024u);
  EXPECT_EQ(found.open_files_hard_limit, 1048576u);
  EXPECT_EQ(found.locked_memory_limit_bytes, kUnlimited);
  EXPECT_EQ(found.lockdown, "integrity");
  EXPECT_TRUE(found.btf);
  EXPECT_TRUE(found.kernel_addresses);
  EXPECT_EQ(found.pmu, "cpu");
}

TEST_F(CapabilitiesTest, GarbageIsUnknown) {
  tree_.write("proc/self/status", "CapEff:\tzz\nUid:\nSeccomp:\tx\n");
  tree_.write("proc/sys/kernel/perf_event_paranoid", "a lot\n");
  tree_.write("proc/sys/kernel/perf_event_mlock_kb", "-5\n");
  tree_.write("proc/self/limits", "Max open files\nMax open files x y\nMax locked memory 5\n");
  tree_.write("sys/kernel/security/lockdown", "]none[");
  tree_.write("sys/kernel/btf/vmlinux", "x");
  tree_.write("proc/kallsyms", "zz\n\n0 T x\n");
  Capabilities found = read();
  EXPECT_EQ(found.effective, 0u);
  EXPECT_FALSE(found.perf_event_paranoid);
  EXPECT_EQ(found.perf_mlock_bytes, 0u);
  EXPECT_EQ(found.open_files_limit, 0u);
  EXPECT_EQ(found.lockdown, "");
  EXPECT_FALSE(found.btf);
  EXPECT_FALSE(found.kernel_addresses);
}

TEST_F(CapabilitiesTest, RecognisesContainers) {
  tree_.write("proc/1/cgroup", "12:cpu:/lxc/box\n");
  EXPECT_EQ(read().container, "lxc");
  tree_.write("proc/1/environ", std::string("A=1\0container=systemd-nspawn\0", 29));
  EXPECT_EQ(read().container, "systemd-nspawn");
  tree_.write(".dockerenv", "");
  EXPECT_EQ(read().container, "docker");
  tree_.write("run/.containerenv", "");
  EXPECT_EQ(read().container, "podman");
  tree_.directory("var/run/secrets/kubernetes.io");
  EXPECT_EQ(read().container, "kubernetes");
}

TEST(CpuList, ReadsRanges) {
  EXPECT_EQ(parse_cpu_list("0-2,5\n"), (std::vector<int>{0, 1, 2, 5}));
  for (const char* bad : {"", "\n", "a", "3-1", "0-", "1,", "0-99999999999", "-1"}) {
    EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
  }
}

TEST(KernelAddresses, HiddenOnesAreZero) {
  EXPECT_FALSE(shows_addresses("0000000000000000 T _text\n0000000000000000 T a\n"));
  EXPECT_FALSE(shows_addresses("0000000000001000 A cpu_tss_rw\n"));
  EXPECT_TRUE(shows_addresses("0000000000001000 A cpu_tss_rw\nffffffff81000000 T _text\n"));
  EXPECT_FALSE(shows_addresses(""));
}

TEST(CapabilitiesReal, AgreesWithTheSystemCalls) {
  Capabilities found = read_capabilities();
  EXPECT_EQ(found.uid, ::geteuid());
  EXPECT_EQ(found.online_cpus.size(), static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(found.open_files_limit,
            files.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<uint64_t>(files.rlim_cur));
}

}  // namespace
}  // namespace assay::os
