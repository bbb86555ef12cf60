#include "os/machine/cgroup.h"

#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "os/fake_tree.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr const char* kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(Cgroup, ReadsTheV1HierarchiesOfAHybridMachine) {
  FakeTree tree;
  tree.write("proc/self/mountinfo", kHybridMounts);
  tree.write("proc/7/cgroup", "4:memory:/box\n3:cpuset:/\n2:cpuacct:/app\n1:cpu:/pool/app\n0::/\n");
  tree.write("sys/fs/cgroup/unified/cpu.stat", "usage_usec 1\n");
  tree.write("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
  tree.write("sys/fs/cgroup/cpu/pool/cpu.cfs_quota_us", "150000\n");
  tree.write("sys/fs/cgroup/cpu/pool/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu/pool/cpu.stat",
             "nr_periods 90\nnr_throttled 40\nthrottled_time 5000000\n");
  tree.write("sys/fs/cgroup/cpu/pool/app/cpu.cfs_quota_us", "-1\n");
  tree.write("sys/fs/cgroup/cpu/pool/app/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu/pool/app/cpu.stat",
             "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
  tree.write("sys/fs/cgroup/cpuacct/app/cpuacct.usage", "123456789\n");
  tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
  tree.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "4096\n");
  tree.write("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n");

  CgroupFs cgroups(tree.root() + "/proc", tree.root());
  auto place = cgroups.find(7);
  ASSERT_TRUE(place) << place.error().what;
  EXPECT_EQ(place->name, "/pool/app");
  EXPECT_FALSE(place->cpu.v2);
  CgroupLimits limits = cgroups.limits(*place);
  EXPECT_DOUBLE_EQ(limits.quota_cpus.value(), 1.5) << "the parent's quota binds the child";
  EXPECT_EQ(limits.quota_path, "/pool");
  EXPECT_EQ(limits.memory_bytes, 1073741824u);
  EXPECT_EQ(limits.cpuset, "0-1");
  EXPECT_EQ(limits.cpuset_cpus, 2u);
  EXPECT_EQ(cgroups.usage_ns(*place), 123456789);
  EXPECT_EQ(cgroups.memory_bytes(*place), 4096u);
  auto levels = cgroups.cpu_levels(*place);
  ASSERT_EQ(levels.size(), 2u) << "its own and the one with a quota, not the root";
  EXPECT_EQ(levels[0].path, "/pool/app");
  EXPECT_FALSE(levels[0].quota_cpus);
  EXPECT_EQ(levels[1].path, "/pool");
  EXPECT_EQ(levels[1].stat.throttled_periods, 40u);
  EXPECT_EQ(levels[1].stat.throttled_ns, 5'000'000);
}

TEST(Cgroup, ReadsV2AndTakesTheSmallestQuota) {
  FakeTree tree;
  tree.write("proc/self/mountinfo",
             "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n");
  tree.write("proc/7/cgroup", "0::/a.slice/b.service\n");
  std::string base = "sys/fs/cgroup/";
  tree.write(base + "cpu.stat", "usage_usec 999\n");
  tree.write(base + "a.slice/cpu.max", "400000 100000\n");
  tree.write(base + "a.slice/cpu.stat",
             "usage_usec 9\nnr_periods 5\nnr_throttled 2\nthrottled_usec 70\n");
  tree.write(base + "a.slice/memory.max", "1000\n");
  tree.write(base + "a.slice/cpuset.cpus.effective", "1,3\n");
  tree.write(base + "a.slice/b.service/cpu.max", "50000 100000\n");
  tree.write(base + "a.slice/b.service/cpu.stat",
             "usage_usec 8\nuser_usec 6\nnr_periods 4\nnr_throttled 3\nthrottled_usec 60\n");
  tree.write(base + "a.slice/b.service/memory.max", "max\n");
  tree.write(base + "a.slice/b.service/memory.current", "77\n");

  CgroupFs cgroups(tree.root() + "/proc", tree.root());
  auto place = cgroups.find(7);
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->cpu.v2);
  CgroupLimits limits = cgroups.limits(*place);
  EXPECT_DOUBLE_EQ(limits.quota_cpus.value(), 0.5);
  EXPECT_EQ(limits.quota_path, "/a.slice/b.service");
  EXPECT_EQ(limits.memory_bytes, 1000u);
  EXPECT_EQ(limits.cpuset_cpus, 2u) << "from the parent: the leaf has no cpuset controller";
  EXPECT_EQ(cgroups.usage_ns(*place), 8000);
  EXPECT_EQ(cgroups.memory_bytes(*place), 77u);
  auto levels = cgroups.cpu_levels(*place);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0].stat.throttled_ns, 60'000);
  EXPECT_EQ(levels[1].stat.periods, 5u);
}

TEST(Cgroup, UnderstandsAPartOfTheHierarchyMountedInAContainer) {
  FakeTree tree;
  tree.write("proc/self/mountinfo",
             "32 31 0:29 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
             "41 31 0:38 / /with\\040space rw - cgroup2 cgroup2 rw\n");
  tree.write("proc/7/cgroup", "1:cpu,cpuacct:/docker/x/web\n0::/\n");
  tree.write("proc/8/cgroup", "1:cpu,cpuacct:/../other\n0::/gone (deleted)\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/web/cpuacct.usage", "5\n");
  tree.write("with space/memory.current", "9\n");
  CgroupFs cgroups(tree.root() + "/proc", tree.root());
  auto place = cgroups.find(7);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->cpu.path, "/web");
  EXPECT_EQ(cgroups.usage_ns(*place), 5);
  EXPECT_EQ(cgroups.memory_bytes(*place), 9u);
  auto outside = cgroups.find(8);
  ASSERT_TRUE(outside);
  EXPECT_TRUE(outside->cpu.dir.empty());
  EXPECT_FALSE(cgroups.limits(*outside).quota_cpus);
  EXPECT_TRUE(cgroups.cpu_levels(*outside).empty());
}

TEST(Cgroup, BadTextIsNoLimitAndAMissingProcessAnError) {
  FakeTree tree;
  tree.write("proc/self/mountinfo",
             "nonsense\n - \n1 2 - cgroup2\n1 2 3 / /cg rw - cgroup2 x rw\n");
  tree.write("proc/7/cgroup", "::\nx\n0::/\n0:\n");
  tree.write("cg/cpu.max", "0 0\n");
  tree.write("cg/memory.max", "12a\n");
  CgroupFs cgroups(tree.root() + "/proc", tree.root());
  auto place = cgroups.find(7);
  ASSERT_TRUE(place);
  EXPECT_FALSE(cgroups.limits(*place).quota_cpus);
  EXPECT_FALSE(cgroups.limits(*place).memory_bytes);
  auto missing = cgroups.find(99);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
}

// A cgroup of this machine with a quota of a tenth of a CPU, removed with the object.
class RealCpuGroup {
 public:
  explicit RealCpuGroup(const CgroupDir& parent) : v2_(parent.v2) {
    dir_ = parent.dir + "/assay_test_" + std::to_string(::getpid());
    if (::mkdir(dir_.c_str(), 0755) != 0) return;
    made_ = true;
    ok_ = v2_ ? put("cpu.max", "10000 100000")
              : put("cpu.cfs_period_us", "100000") && put("cpu.cfs_quota_us", "10000");
  }
  ~RealCpuGroup() {
    if (made_) ::rmdir(dir_.c_str());
  }
  bool ok() const { return ok_; }
  bool put(const std::string& file, const std::string& text) const {
    UniqueFd fd(::open((dir_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() && ::write(fd.get(), text.data(), text.size()) == ssize_t(text.size());
  }

 private:
  std::string dir_;
  bool v2_, made_ = false, ok_ = false;
};

TEST(CgroupReal, ABusyChildUnderAQuotaIsSeenThrottled) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: making a control group needs root";
  CgroupFs cgroups;
  auto own = cgroups.find(::getpid());
  ASSERT_TRUE(own) << own.error().what;
  if (own->cpu.dir.empty()) GTEST_SKIP() << "skipped: no cpu controller is mounted here";
  RealCpuGroup group(own->cpu);
  if (!group.ok()) GTEST_SKIP() << "skipped: cannot make a control group with a CPU quota here";

  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    timespec now{};
    do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec < 20);  // ends by itself should the test die
    ::_exit(0);
  }
  EXPECT_TRUE(group.put("cgroup.procs", std::to_string(child)));
  // A quota of 10 ms per 100 ms runs out within the first full period; wait for it up to 10 s.
  CgroupCpuStat seen;
  CgroupLimits limits;
  for (int tries = 0; tries < 200 && seen.throttled_ns == 0; ++tries) {
    ::usleep(50'000);
    auto place = cgroups.find(child);
    if (!place) break;
    limits = cgroups.limits(*place);
    auto levels = cgroups.cpu_levels(*place);
    if (!levels.empty()) seen = levels[0].stat;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(seen.throttled_periods, 0u);
  EXPECT_GT(seen.throttled_ns, 0);
  EXPECT_GE(seen.periods, seen.throttled_periods);
  EXPECT_DOUBLE_EQ(limits.quota_cpus.value_or(0), 0.1);
}

TEST(Cgroup, ServicesAreNamedAsPeopleKnowThem) {
  std::string id = std::string(60, '0') + "abcd", shown = "container 000000000000";
  EXPECT_EQ(service_name("/system.slice/nginx.service"), "nginx.service");
  EXPECT_EQ(service_name("/user.slice/user-0.slice/user@0.service/app.slice/a.scope"), "a.scope");
  EXPECT_EQ(service_name("/system.slice/docker-" + id + ".scope"), shown);
  EXPECT_EQ(service_name("/docker/" + id), shown);
  EXPECT_EQ(service_name("/kubepods/pod1/" + id), shown);
  EXPECT_EQ(service_name("/kubepods.slice/a.slice/cri-containerd-" + id + ".scope"), shown);
  EXPECT_EQ(service_name("/docker/" + id + "/system.slice/inner.service"), shown);
  EXPECT_EQ(service_name("/batch/jobs"), "/batch/jobs");
  EXPECT_EQ(service_name("/"), "");
  EXPECT_EQ(service_name(""), "");
}

}  // namespace
}  // namespace assay::os
