#include "os/machine/host.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/fake_tree.h"

namespace assay::os {
namespace {

constexpr const char* kCpuInfo =
    "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nphysical id\t: 0\ncore id\t: 0\n"
    "flags\t\t: fpu hypervisor avx2\n\n"
    "processor\t: 1\nmodel name\t: AMD EPYC 7B13\nphysical id\t: 0\ncore id\t: 0\n"
    "flags\t\t: fpu hypervisor avx2\n\n"
    "processor\t: 2\nphysical id\t: 1\ncore id\t: 0\n";

TEST(Host, ReadsTheFactsOfAMachine) {
  FakeTree tree;
  tree.write("proc/cpuinfo", kCpuInfo);
  tree.write("proc/meminfo", "MemTotal:       16384 kB\nSwapTotal:     8 kB\n");
  tree.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.write("proc/sys/kernel/hostname", "box\n");
  tree.write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  tree.write("sys/devices/system/cpu/online", "0-2\n");
  tree.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
  tree.write("sys/class/dmi/id/product_name", "Standard PC\n");
  tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  tree.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  Host host = read_host(ProcFs(tree.root() + "/proc"), tree.root());
  EXPECT_EQ(host.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(host.hostname, "box");
  EXPECT_EQ(host.distribution, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(host.cpu_model, "AMD EPYC 7B13");
  EXPECT_EQ(host.cpus_online, 3u);
  EXPECT_EQ(host.cpus_physical, 2u);
  EXPECT_EQ(host.memory_bytes, 16384u * 1024);
  EXPECT_EQ(host.swap_bytes, 8192u);
  EXPECT_EQ(host.virtualisation, "virtual machine (QEMU Standard PC)");
  EXPECT_EQ(host.clocksource, "tsc");
  EXPECT_EQ(host.huge_pages, "madvise");
}

TEST(Host, AnEmptyMachineIsEmptyNotWrong) {
  FakeTree tree;
  Host host = read_host(ProcFs(tree.root() + "/proc"), tree.root());
  EXPECT_EQ(host.kernel, "");
  EXPECT_EQ(host.cpus_online, 0u);
  EXPECT_EQ(host.virtualisation, "");
}

// A machine of eight CPUs on which process 7 has the given mask, cpuset and quota.
UsableCpus usable_with(const std::string& mask, const std::string& cpuset, const std::string& max) {
  FakeTree tree;
  add_process(tree, {.pid = 7, .comm = "srv"});
  tree.write("7/status",
             "Name:\tsrv\nTgid:\t7\nPid:\t7\nPPid:\t1\nUid:\t0\t0\t0\t0\n"
             "Cpus_allowed_list:\t" +
                 mask + "\n");
  tree.write("self/mountinfo", "1 2 3 / /cg rw - cgroup2 cgroup2 rw\n");
  tree.write("cg/cpu.max", max);
  tree.write("cg/cpuset.cpus.effective", cpuset);
  Host host;
  host.cpus_online = 8;
  return usable_cpus(7, host, ProcFs(tree.root()), CgroupFs(tree.root(), tree.root()));
}

TEST(UsableCpus, TheTightestLimitBinds) {
  UsableCpus free = usable_with("0-7", "0-7", "max 100000");
  EXPECT_DOUBLE_EQ(free.cpus, 8);
  EXPECT_EQ(free.bound_by, "host");
  UsableCpus pinned = usable_with("0-1", "0-7", "max 100000");
  EXPECT_DOUBLE_EQ(pinned.cpus, 2);
  EXPECT_EQ(pinned.bound_by, "affinity");
  EXPECT_EQ(pinned.affinity_list, "0-1");
  UsableCpus quota = usable_with("0-1", "0-3", "150000 100000");
  EXPECT_DOUBLE_EQ(quota.cpus, 1.5);
  EXPECT_EQ(quota.bound_by, "quota");
  UsableCpus cpuset = usable_with("0-3", "0-3", "900000 100000");
  EXPECT_DOUBLE_EQ(cpuset.cpus, 4);
  EXPECT_EQ(cpuset.bound_by, "cpuset");
}

TEST(HostReal, AgreesWithTheSystemCalls) {
  Host host = read_host();
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(host.kernel, name.release);
  EXPECT_EQ(host.cpus_online, static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_GT(host.memory_bytes, 0u);
  UsableCpus usable = usable_cpus(::getpid(), host, ProcFs(), CgroupFs());
  EXPECT_GT(usable.cpus, 0);
  EXPECT_LE(usable.cpus, host.cpus_online);
}

// The start time has tick resolution (10 ms); this process is young, and 1 s covers both clocks.
TEST(HostReal, OwnStartTimeIsBeforeNowAndAfterTheParents) {
  ProcFs proc;
  auto own = proc.stat(::getpid());
  ASSERT_TRUE(own);
  int64_t now = utc_ns();
  int64_t started = start_utc_ns(own->start_ticks, now, boottime_ns());
  EXPECT_LE(started, now + kNsPerSecond);
  EXPECT_GT(started, now - 3'600 * kNsPerSecond) << "a test does not run for an hour";
  EXPECT_EQ(start_utc_ns(UINT64_MAX, 5, 3), 0);
}

}  // namespace
}  // namespace assay::os
