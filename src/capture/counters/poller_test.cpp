#include "capture/counters/poller.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/counters/recording_sink.h"
#include "os/fake_tree.h"

namespace assay::capture {
namespace {

using model::ProcessId;
using model::SeriesKind;
using model::SeriesScope;
using model::ThreadId;
using testing::ElementsAre;

const int64_t kTickNs = kNsPerSecond / ::sysconf(_SC_CLK_TCK);

class NoPmu final : public os::CounterKernel {
 public:
  Result<UniqueFd> open(const perf_event_attr&, pid_t, int) override { return fail("none"); }
  Result<os::CounterReading> read(int) override { return fail("none"); }
  Result<void> filter(int, const char*) override { return {}; }
};

// A poller over a fake /proc with one process of two threads, and clocks that the test turns.
class FakePoller : public testing::Test {
 protected:
  FakePoller() {
    os::add_process(tree, {.pid = 7, .comm = "srv", .threads = {{8, "worker"}}});
    tree.write("self/mountinfo", "");
    tasks = {{{ProcessId{1}, 7}}, {{ThreadId{10}, 7, 7}, {ThreadId{11}, 7, 8}}};
    set_sched(7, 1'000, 200, 3);
    set_sched(8, 5'000, 100, 2);
  }
  void set_sched(pid_t tid, int64_t run, int64_t delay, int64_t slices) {
    tree.write(fmt::format("7/task/{}/schedstat", tid),
               fmt::format("{} {} {}\n", run, delay, slices));
  }
  CounterPoller& poller() {
    if (poller_) return *poller_;
    CounterOptions options;
    options.proc_root = options.path_prefix = tree.root();
    options.clock = [this] { return now; };
    options.cpu_clock = [this] { return cpu_now += cpu_step; };
    options.socket_source = [](pid_t) { return std::vector<os::TcpSocket>{}; };
    options.unix_source = [](pid_t) { return std::vector<os::UnixSocket>{}; };
    options.hardware = hardware;
    poller_ = std::make_unique<CounterPoller>(
        options, [this] { return tasks; }, sink, next);
    return *poller_;
  }
  // Of one CPU, over a long time. Each poll is so expensive that all groups are limited by their
  // share, and none by the longest pause.
  double share_of_dear_polls() {
    cpu_step = 4 * kNsPerMs;
    poller().poll_all(now);
    const TimeNs begin = now, end = begin + 400 * kNsPerSecond;
    const int64_t before = poller().cpu_ns();
    for (TimeNs due = poller().poll(now); due < end; due = poller().poll(now)) now = due;
    return static_cast<double>(poller().cpu_ns() - before) / static_cast<double>(end - begin);
  }
  void poll_at(TimeNs time) {
    now = time;
    poller().poll(time);
  }

  os::FakeTree tree;
  RecordingSink sink;
  std::atomic<uint32_t> next{100};
  LiveTasks tasks;
  TimeNs now = kNsPerSecond;
  int64_t cpu_now = 0, cpu_step = 0;
  os::CounterKernel* hardware = nullptr;
  std::unique_ptr<CounterPoller> poller_;
};

TEST_F(FakePoller, TheWindowHasAPointAtBothEnds) {
  poller().poll_all(now);
  now += 400 * kNsPerMs;
  set_sched(7, 2'000, 300, 4);
  poller().poll_all(now);
  EXPECT_THAT(sink.values(SeriesScope::thread, 10, "run"), ElementsAre(1'000, 2'000));
  EXPECT_THAT(sink.values(SeriesScope::thread, 10, "run_delay"), ElementsAre(200, 300));
  EXPECT_THAT(sink.values(SeriesScope::thread, 10, "timeslices"), ElementsAre(3, 4));
  EXPECT_THAT(sink.values(SeriesScope::thread, 11, "run"), ElementsAre(5'000, 5'000));
  EXPECT_THAT(sink.values(SeriesScope::thread, 11, "utime"),
              ElementsAre(30 * kTickNs, 30 * kTickNs));
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "stime"),
              ElementsAre(40 * kTickNs, 40 * kTickNs));
  auto points = sink.points(SeriesScope::thread, 10, "run");
  EXPECT_EQ(points[0].time, kNsPerSecond);
  EXPECT_EQ(points[1].time, now);
  std::set<uint32_t> ids;
  for (const model::Series& series : sink.series()) ids.insert(series.id.value);
  EXPECT_EQ(ids.size(), sink.series().size()) << "every series has an id of its own";
  EXPECT_EQ(*ids.begin(), 100u);
  EXPECT_EQ(next.load(), 100 + ids.size());
}

TEST_F(FakePoller, SchedulerAccountsAreReadMoreOftenThanTheRest) {
  poller().poll_all(now);
  for (int i = 1; i <= 5; ++i) {
    set_sched(7, 1'000 + i, 200, 3);
    tree.write("7/stat",
               fmt::format("7 (srv) S 1 7 7 0 -1 0 {} 0 2 0 30 40 0 0 20 0 2 0 5\n", 11 + i));
    poll_at(kNsPerSecond + i * 200 * kNsPerMs);
  }
  EXPECT_EQ(sink.values(SeriesScope::thread, 10, "run").size(), 6u);
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "minor_faults"), ElementsAre(11, 16));
}

TEST_F(FakePoller, PollSaysWhenItIsDueAndDoesNothingBefore) {
  poller().poll_all(now);
  TimeNs due = poller().poll(now);
  EXPECT_EQ(due, now + 200 * kNsPerMs);
  set_sched(7, 9'000, 200, 3);
  poll_at(due - 1);
  EXPECT_EQ(sink.values(SeriesScope::thread, 10, "run").size(), 1u);
  poll_at(due);
  EXPECT_EQ(sink.values(SeriesScope::thread, 10, "run").size(), 2u);
}

TEST_F(FakePoller, ThreadsComeAndGoAndTheirLastValuesStand) {
  poller().poll_all(now);
  poll_at(kNsPerSecond + 200 * kNsPerMs);  // unchanged: held back
  tree.remove("7/task/8");
  tasks.threads.pop_back();
  os::add_process(tree, {.pid = 9, .comm = "child"});
  tasks.processes.push_back({ProcessId{2}, 9});
  tasks.threads.push_back({ThreadId{12}, 9, 9});
  poll_at(kNsPerSecond + 400 * kNsPerMs);
  auto gone = sink.points(SeriesScope::thread, 11, "run");
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[1].time, kNsPerSecond + 200 * kNsPerMs);
  EXPECT_EQ(gone[1].value, 5'000);
  EXPECT_EQ(sink.values(SeriesScope::thread, 12, "run").size(), 1u) << "a newcomer begins at once";
  now += 100 * kNsPerMs;
  poller().poll_all(now);
  EXPECT_EQ(sink.points(SeriesScope::thread, 11, "run").size(), 2u) << "the dead say nothing more";
}

TEST_F(FakePoller, AThreadThatEndedButIsStillListedIsLeftOut) {
  tree.remove("7/task/8");
  poller().poll_all(now);
  EXPECT_EQ(sink.find(SeriesScope::thread, 11, "run"), nullptr);
  EXPECT_FALSE(sink.noted("run-queue time"))
      << "a thread that ended is no kernel without schedstat";
}

TEST_F(FakePoller, WithoutSchedstatTicksAreUsedAndItIsSaid) {
  tree.remove("7/task/7/schedstat");
  tree.remove("7/task/8/schedstat");
  poller().poll_all(now);
  EXPECT_TRUE(sink.noted("run-queue time"));
  EXPECT_THAT(sink.values(SeriesScope::thread, 10, "run", "ticks"), ElementsAre(70 * kTickNs));
  EXPECT_THAT(sink.values(SeriesScope::thread, 11, "run", "ticks"), ElementsAre(70 * kTickNs));
  EXPECT_EQ(sink.find(SeriesScope::thread, 10, "run_delay"), nullptr);
}

TEST_F(FakePoller, ZerosOfAThreadThatHasRunAreNoAccountEither) {
  set_sched(7, 0, 0, 0);
  poller().poll_all(now);
  EXPECT_TRUE(sink.noted("run-queue time"));
  EXPECT_THAT(sink.values(SeriesScope::thread, 10, "run", "ticks"), ElementsAre(70 * kTickNs));
}

TEST_F(FakePoller, HostCountersAreInTheirUnits) {
  tree.write("stat",
             "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 77\nprocesses 12\n"
             "procs_running 3\nprocs_blocked 1\n");
  tree.write("loadavg", "1.25 0.52 0.10 1/99 1234\n");
  tree.write("meminfo", "MemTotal: 10 kB\nMemAvailable:   4 kB\n");
  tree.write("pressure/io", "some avg10=0.00 total=5\nfull avg10=0.00 total=3\n");
  tree.write("pressure/cpu", "garbage\n");
  poller().poll_all(now);
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "cpu_user"), ElementsAre(kTickNs));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "cpu_steal"), ElementsAre(8 * kTickNs));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "context_switches"), ElementsAre(77));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "runnable"), ElementsAre(3));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "load_1m"), ElementsAre(1'250));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "memory_available"), ElementsAre(4'096));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "psi_io_some"), ElementsAre(5'000));
  EXPECT_THAT(sink.values(SeriesScope::host, 0, "psi_io_full"), ElementsAre(3'000));
  EXPECT_EQ(sink.find(SeriesScope::host, 0, "psi_cpu_some"), nullptr);
}

TEST_F(FakePoller, ProcessesTellMemoryAndIo) {
  tree.write("7/io", "rchar: 10\nwchar: 20\nsyscr: 1\nread_bytes: 4096\nwrite_bytes: 0\n");
  tree.write("7/status",
             "Name:\tsrv\nTgid:\t7\nPid:\t7\nPPid:\t1\nUid:\t0\t0\t0\t0\nVmRSS:\t 8 kB\n");
  tree.link("7/fd/3", "socket:[5]");
  poller().poll_all(now);
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "read_chars"), ElementsAre(10));
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "read_bytes"), ElementsAre(4'096));
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "rss"), ElementsAre(8'192));
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "threads"), ElementsAre(2));
  EXPECT_THAT(sink.values(SeriesScope::process, 1, "open_files"), ElementsAre(1));
  EXPECT_EQ(sink.find(SeriesScope::process, 1, "rss")->kind, SeriesKind::gauge);
}

TEST_F(FakePoller, ControlGroupsAreToldOncePerLevel) {
  tree.write("self/mountinfo", "1 2 3 / /cg rw - cgroup2 cgroup2 rw\n");
  tree.write("7/cgroup", "0::/a/b\n");
  os::add_process(tree, {.pid = 9, .comm = "child", .cgroup = "0::/a/c\n"});
  tasks.processes.push_back({ProcessId{2}, 9});
  tree.write("cg/a/cpu.max", "150000 100000\n");
  tree.write("cg/a/cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 2\nthrottled_usec 7\n");
  tree.write("cg/a/b/cpu.stat", "usage_usec 4\n");
  tree.write("cg/a/c/cpu.stat", "usage_usec 5\n");
  tree.write("cg/a/b/memory.current", "100\n");
  tree.write("cg/a/b/memory.max", "200\n");
  poller().poll_all(now);
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "usage", "/a/b"), ElementsAre(4'000));
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "usage", "/a/c"), ElementsAre(5'000));
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "throttled", "/a"), ElementsAre(7'000));
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "quota", "/a"), ElementsAre(1'500));
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "memory", "/a/b"), ElementsAre(100));
  EXPECT_THAT(sink.values(SeriesScope::cgroup, 0, "memory_limit", "/a/b"), ElementsAre(200));
}

TEST_F(FakePoller, ADearPollBacksOffAndSaysSo) {
  cpu_step = 30 * kNsPerMs;
  poller().poll_all(now);
  EXPECT_TRUE(sink.noted("counters"));
  set_sched(7, 9'000, 200, 3);
  poll_at(now + kNsPerSecond);
  EXPECT_EQ(sink.values(SeriesScope::thread, 10, "run").size(), 1u) << "not due for some seconds";
  now += 1;
  poller().poll_all(now);
  EXPECT_EQ(sink.values(SeriesScope::thread, 10, "run").size(), 2u) << "the window's end always is";
  EXPECT_GE(poller().cpu_ns(), 16 * 30 * kNsPerMs);
}

TEST_F(FakePoller, AllGroupsTogetherUseTheBudgetAndNoMore) {
  double share = share_of_dear_polls();
  EXPECT_LE(share, CounterOptions{}.cpu_share);
  // Each group's last interval reaches beyond the end.
  EXPECT_GE(share, 0.95 * CounterOptions{}.cpu_share);
}

TEST_F(FakePoller, HardwareCountersAreWithinTheSameBudget) {
  NoPmu no_pmu;
  hardware = &no_pmu;
  EXPECT_LE(share_of_dear_polls(), CounterOptions{}.cpu_share);
}

// Burns CPU on one thread of this process between two polls and compares the kernel's account with
// the thread's own clock. The kernel updates the account at ticks and switches: 20 ms is two ticks
// at each end of the window at HZ=100.
TEST(PollerReal, RunTimeAgreesWithTheThreadsOwnClock) {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> own_cpu_ns{0};
  auto thread_cpu_ns = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * kNsPerSecond + now.tv_nsec;
  };
  std::thread busy([&] {
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    while (!stop) own_cpu_ns = thread_cpu_ns();
  });
  while (tid == 0) std::this_thread::yield();
  RecordingSink sink;
  std::atomic<uint32_t> next{0};
  LiveTasks tasks{{{ProcessId{1}, ::getpid()}}, {{ThreadId{1}, ::getpid(), tid}}};
  CounterPoller poller(
      {}, [&] { return tasks; }, sink, next);
  int64_t cpu_before = own_cpu_ns;
  poller.poll_all(monotonic_ns());
  while (own_cpu_ns < cpu_before + 200 * kNsPerMs) ::usleep(5'000);
  int64_t cpu_after = own_cpu_ns;
  poller.poll_all(monotonic_ns());
  stop = true;
  busy.join();

  auto run = sink.values(SeriesScope::thread, 1, "run");
  if (run.empty()) GTEST_SKIP() << "skipped: this kernel keeps no schedstat";
  ASSERT_EQ(run.size(), 2u);
  EXPECT_NEAR(static_cast<double>(run[1] - run[0]), static_cast<double>(cpu_after - cpu_before),
              static_cast<double>(40 * kNsPerMs));
  auto host = sink.values(SeriesScope::host, 0, "context_switches");
  ASSERT_EQ(host.size(), 2u);
  EXPECT_GT(sink.values(SeriesScope::process, 1, "rss").back(), 0);
  EXPECT_GT(sink.values(SeriesScope::self, 0, "cpu").back(), 200 * kNsPerMs);
  EXPECT_GT(sink.values(SeriesScope::process, 1, "open_files").back(), 2);
  EXPECT_GT(poller.cpu_ns(), 0);
}

}  // namespace
}  // namespace assay::capture
