#include "session/doctor/doctor.h"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/fake_tree.h"
#include "os/process/launch.h"

namespace assay::session {
namespace {

using model::Check;
using model::CheckStatus;
using testing::HasSubstr;

// A kernel that allows what it is told to.
class FakePerfKernel final : public os::PerfKernel {
 public:
  bool every_cpu = true, kernel_code = true, any = true, cycles = true, tracepoints = true;
  size_t largest_ring = SIZE_MAX;
  int opened = 0, enabled = 0;

  Result<UniqueFd> open(const perf_event_attr& attr, pid_t pid, int) override {
    auto refuse = [](int code) {
      errno = code;
      return fail_errno("perf_event_open");
    };
    if (!any || (pid == -1 && !every_cpu)) return refuse(EACCES);
    if (!attr.exclude_kernel && !kernel_code) return refuse(EACCES);
    if (attr.type == PERF_TYPE_HARDWARE && !cycles) return refuse(ENOENT);
    if (attr.type == PERF_TYPE_TRACEPOINT && !tracepoints) return refuse(EACCES);
    ++opened;
    return UniqueFd(::eventfd(0, EFD_CLOEXEC));
  }
  Result<std::unique_ptr<os::RingMemory>> map_ring(int, size_t data_bytes) override {
    if (data_bytes > largest_ring) {
      errno = EPERM;
      return fail_errno("mmap");
    }
    return std::make_unique<Memory>();
  }
  Result<void> redirect_output(int, int) override { return {}; }
  Result<void> enable(int) override {
    ++enabled;
    return {};
  }
  Result<void> disable(int) override { return {}; }
  Result<uint64_t> lost(int) override { return 0; }
  Result<uint64_t> id(int fd) override { return static_cast<uint64_t>(fd); }

 private:
  struct Memory final : os::RingMemory {
    perf_event_mmap_page* control() override { return &page; }
    std::span<const std::byte> data() override { return bytes; }
    perf_event_mmap_page page{};
    std::vector<std::byte> bytes = std::vector<std::byte>(4096);
  };
};

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    proc("self/status", "Uid:\t0\t0\t0\t0\nNSpid:\t900\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
    proc("sys/kernel/perf_event_paranoid", "2\n");
    proc("sys/kernel/kptr_restrict", "0\n");
    proc("sys/kernel/perf_event_mlock_kb", "516\n");
    proc("sys/kernel/perf_event_max_sample_rate", "100000\n");
    proc("self/limits",
         "Max open files            1024                 1048576              files\n"
         "Max locked memory         8388608              8388608              bytes\n");
    proc("kallsyms", "ffffffff81000000 T _text\n");
    proc("900/task/900/schedstat", "1 2 3\n");
    tree_.write("sys/devices/system/cpu/online", "0-1\n");
    tree_.write("sys/kernel/btf/vmlinux", "\x9f\xeb");
  }
  void proc(const std::string& path, const std::string& text) { tree_.write("proc/" + path, text); }
  void unprivileged() {
    proc("self/status", "Uid:\t1000\t1000\t1000\t1000\nNSpid:\t900\nCapEff:\t0\nSeccomp:\t0\n");
  }
  std::vector<Check> run(const target::TargetSpec* spec = nullptr) {
    DoctorEnvironment environment;
    environment.roots = {
        .proc = tree_.root() + "/proc", .sys = tree_.root() + "/sys", .root = tree_.root()};
    environment.perf = &kernel_;
    environment.self = 900;
    environment.waking_tracepoint = [this]() -> Result<os::Tracepoint> {
      if (!tracefs_) return fail("tracefs is not mounted");
      return os::Tracepoint{300, {{"pid", {24, 4}}}};
    };
    environment.bpf = [this](const os::Capabilities&) -> Result<void> {
      if (!bpf_) return fail_with_remedy("this kernel is too old", "boot a newer one");
      return {};
    };
    return run_doctor(environment, spec);
  }
  static Check find(const std::vector<Check>& checks, const std::string& name) {
    for (const Check& check : checks) {
      if (check.name == name) return check;
    }
    ADD_FAILURE() << "no check " << name;
    return {};
  }
  os::FakeTree tree_;
  FakePerfKernel kernel_;
  bool tracefs_ = true;
  bool bpf_ = true;
};

TEST_F(DoctorTest, AMachineThatAllowsEverythingIsOk) {
  for (const Check& check : run()) {
    if (check.name == "wake-ups") continue;  // asks the running system's tracefs
    EXPECT_EQ(check.status, CheckStatus::ok) << check.name << ": " << check.detail;
    EXPECT_EQ(check.cost + check.remedy, "") << check.name;
  }
  EXPECT_GT(kernel_.opened, 0);
  EXPECT_EQ(kernel_.enabled, 0) << "a probe must not start to count";
}

TEST_F(DoctorTest, EverythingThatIsNotOkSaysWhatItCosts) {
  unprivileged();
  proc("sys/kernel/perf_event_paranoid", "3\n");
  proc("kallsyms", "0000000000000000 T _text\n");
  tree_.remove("sys/kernel/btf/vmlinux");
  kernel_.any = false;
  tracefs_ = false;
  for (const Check& check : run()) {
    if (check.status == CheckStatus::ok) continue;
    EXPECT_NE(check.cost, "") << check.name;
    EXPECT_NE(check.detail, "") << check.name;
    if (check.name != "locked memory") {
      EXPECT_NE(check.remedy, "") << check.name;
    }
  }
}

TEST_F(DoctorTest, BpfThatDoesNotLoadSaysWhyAndWhatItCosts) {
  EXPECT_EQ(find(run(), "BPF").status, CheckStatus::ok);
  bpf_ = false;
  Check check = find(run(), "BPF");
  EXPECT_EQ(check.status, CheckStatus::limited);
  EXPECT_EQ(check.detail, "this kernel is too old");
  EXPECT_EQ(check.remedy, "boot a newer one");
  EXPECT_THAT(check.cost, HasSubstr("perf events"));
}

TEST_F(DoctorTest, TiersOfEvents) {
  EXPECT_EQ(find(run(), "perf events").status, CheckStatus::ok);
  kernel_.every_cpu = false;
  Check per_task = find(run(), "perf events");
  EXPECT_EQ(per_task.status, CheckStatus::limited);
  EXPECT_THAT(per_task.detail, HasSubstr("kernel code included"));
  EXPECT_THAT(per_task.remedy, HasSubstr("perf_event_paranoid=-1"));
  kernel_.kernel_code = false;
  EXPECT_THAT(find(run(), "perf events").detail, HasSubstr("without kernel code"));
  kernel_.any = false;
  EXPECT_EQ(find(run(), "perf events").status, CheckStatus::missing);
}

TEST_F(DoctorTest, Paranoid) {
  EXPECT_EQ(find(run(), "perf_event_paranoid").status, CheckStatus::ok);  // we have CAP_PERFMON
  unprivileged();
  EXPECT_EQ(find(run(), "perf_event_paranoid").status, CheckStatus::limited);
  proc("sys/kernel/perf_event_paranoid", "-1\n");
  EXPECT_EQ(find(run(), "perf_event_paranoid").status, CheckStatus::ok);
  proc("sys/kernel/perf_event_paranoid", "4\n");
  EXPECT_EQ(find(run(), "perf_event_paranoid").status, CheckStatus::missing);
  tree_.remove("proc/sys/kernel/perf_event_paranoid");
  EXPECT_THAT(find(run(), "perf_event_paranoid").remedy, HasSubstr("CONFIG_PERF_EVENTS"));
}

TEST_F(DoctorTest, CapabilitiesNameTheCommandThatGivesThem) {
  unprivileged();
  tree_.link("proc/900/exe", "/opt/assay");
  Check check = find(run(), "capabilities");
  EXPECT_EQ(check.status, CheckStatus::limited);
  EXPECT_THAT(check.detail, HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_THAT(check.remedy, HasSubstr("sudo setcap cap_perfmon"));
  EXPECT_THAT(check.remedy, HasSubstr("/opt/assay"));
  tree_.write(".dockerenv", "");
  EXPECT_THAT(find(run(), "capabilities").remedy, HasSubstr("docker run --cap-add PERFMON"));
}

TEST_F(DoctorTest, SmallRingsAndFewFiles) {
  kernel_.largest_ring = 64 * 1024;
  Check rings = find(run(), "locked memory");
  EXPECT_EQ(rings.status, CheckStatus::limited);
  EXPECT_THAT(rings.remedy, HasSubstr("perf_event_mlock_kb"));
  EXPECT_EQ(find(run(), "open files").status, CheckStatus::ok);
  kernel_.every_cpu = false;
  proc("self/limits", "Max open files 1024 4096 files\n");
  Check files = find(run(), "open files");
  EXPECT_EQ(files.status, CheckStatus::limited);
  EXPECT_THAT(files.detail, HasSubstr("682 threads"));  // 4096 / (3 events × 2 CPUs)
}

TEST_F(DoctorTest, KernelNamesPmuTracefsAndLockdown) {
  proc("kallsyms", "0000000000000000 T _text\n");
  EXPECT_THAT(find(run(), "kernel names").remedy, HasSubstr("kptr_restrict=0"));
  kernel_.cycles = false;
  EXPECT_EQ(find(run(), "hardware counters").status, CheckStatus::limited);
  tracefs_ = false;
  EXPECT_THAT(find(run(), "wake-ups").remedy, HasSubstr("mount -t tracefs"));
  tree_.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(find(run(), "lockdown").status, CheckStatus::limited);
  tree_.remove("proc/900/task");
  EXPECT_EQ(find(run(), "scheduler statistics").status, CheckStatus::limited);
}

TEST_F(DoctorTest, ATargetThatIsNotThereIsACheck) {
  target::TargetSpec spec{.pids = {4242}};
  Check check = find(run(&spec), "target");
  EXPECT_EQ(check.status, CheckStatus::missing);
  EXPECT_THAT(check.detail, HasSubstr("no process 4242"));
}

TEST(DoctorReal, ExaminesAServerOfItsOwn) {
  auto server = os::LaunchedProcess::start({"sleep", "300"});
  ASSERT_TRUE(server && server->release());
  DoctorEnvironment environment;
  environment.self = ::getpid();
  target::TargetSpec spec{.pids = {server->pid()}};
  std::vector<Check> checks = run_doctor(environment, &spec);
  server->terminate(10 * kNsPerSecond);
  std::vector<std::string> names;
  for (const Check& check : checks) {
    names.push_back(check.name);
    if (check.status != CheckStatus::ok) {
      EXPECT_NE(check.cost, "") << check.name;
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"perf events", "target", "access", "tracer",
                                            "program file", "symbols of sleep", "build of sleep"}));
}

}  // namespace
}  // namespace assay::session
