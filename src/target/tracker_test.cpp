#include "target/tracker.h"

#include <map>

#include <gmock/gmock.h>

#include "os/fake_tree.h"

namespace assay::target {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Keeps the last state of everything, as a run file does, and checks that ids ascend from 0.
struct Recorder : TrackerSink {
  void put_process(const model::Process& process) override {
    EXPECT_LE(process.id.value, processes.size());
    processes[process.id.value] = process;
  }
  void put_thread(const model::Thread& thread) override {
    EXPECT_LE(thread.id.value, threads.size());
    EXPECT_TRUE(processes.contains(thread.process.value)) << "a thread before its process";
    threads[thread.id.value] = thread;
  }
  std::map<uint32_t, model::Process> processes;
  std::map<uint32_t, model::Thread> threads;
};

class TrackerTest : public testing::Test {
 protected:
  TrackerTest() : proc_(tree_.root()) {}

  static ResolvedTarget server() {
    ResolvedProcess process;
    process.pid = 100;
    process.parent = 1;
    process.exe = "/srv";
    process.comm = "srv2";
    process.cmdline = "srv --fast";
    process.cgroup = "/web";
    process.threads = {{100, "srv2"}, {101, "io-1"}};
    ResolvedTarget target;
    target.processes = {process};
    target.root_count = 1;
    return target;
  }

  os::FakeTree tree_;
  os::ProcFs proc_;
  Recorder recorder_;
  Tracker tracker_{proc_, recorder_, true};
};

TEST_F(TrackerTest, AdoptsWhatWasResolved) {
  tracker_.adopt(server(), 50);
  EXPECT_TRUE(tracker_.contains(100));
  EXPECT_FALSE(tracker_.contains(101));
  ASSERT_EQ(recorder_.threads.size(), 2u);
  EXPECT_EQ(recorder_.processes[0].role, "main");
  EXPECT_EQ(recorder_.processes[0].begin_ns, 50);
  EXPECT_EQ(recorder_.processes[0].end_ns, model::kStillRunning);
  EXPECT_EQ(recorder_.threads[0].pool, "srv2");  // the main thread keeps its name
  EXPECT_EQ(recorder_.threads[1].pool, "io-*");
  ASSERT_NE(tracker_.find(101), nullptr);
  EXPECT_EQ(tracker_.find(101)->thread, model::ThreadId{1});
  EXPECT_EQ(tracker_.find(101)->process, model::ProcessId{0});
  EXPECT_EQ(tracker_.find(101)->pid, 100);
  EXPECT_EQ(tracker_.find(7), nullptr);
}

TEST_F(TrackerTest, FollowsThreads) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 101, 100, 102, 60);
  EXPECT_EQ(recorder_.threads[2].name, "io-1");  // inherited until it names itself
  tracker_.on_comm(102, "io-2");
  EXPECT_EQ(recorder_.threads[2].name, "io-2");
  EXPECT_EQ(recorder_.threads[2].begin_ns, 60);
  tracker_.on_exit(100, 102, 70);
  EXPECT_EQ(recorder_.threads[2].end_ns, 70);
  EXPECT_EQ(tracker_.find(102), nullptr);
  EXPECT_TRUE(tracker_.contains(100));
}

TEST_F(TrackerTest, TheLastThreadEndsTheProcess) {
  tracker_.adopt(server(), 50);
  tracker_.on_exit(100, 100, 60);  // the main thread may leave first
  EXPECT_TRUE(tracker_.contains(100));
  tracker_.on_exit(100, 101, 70);
  EXPECT_FALSE(tracker_.contains(100));
  EXPECT_EQ(recorder_.processes[0].end_ns, 70);
  EXPECT_EQ(tracker_.thread_count(), 0u);
}

TEST_F(TrackerTest, FollowsChildrenOfChildren) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 101, 200, 200, 60);
  tracker_.on_fork(200, 200, 300, 300, 61);
  EXPECT_EQ(recorder_.processes[1].role, "worker 0");
  EXPECT_EQ(recorder_.processes[1].comm, "io-1");
  EXPECT_EQ(recorder_.processes[1].parent_pid, 100);
  EXPECT_EQ(recorder_.processes[1].cgroup, "/web");
  EXPECT_EQ(recorder_.processes[2].role, "worker 1");
  EXPECT_EQ(recorder_.processes[2].parent_pid, 200);
  tracker_.on_fork(999, 999, 400, 400, 62);  // not of the target
  EXPECT_FALSE(tracker_.contains(400));
}

TEST_F(TrackerTest, ChildrenCanBeLeftOut) {
  Tracker alone(proc_, recorder_, false);
  alone.adopt(server(), 50);
  alone.on_fork(100, 100, 200, 200, 60);
  EXPECT_FALSE(alone.contains(200));
  alone.on_fork(100, 100, 100, 102, 61);
  EXPECT_NE(alone.find(102), nullptr);
}

TEST_F(TrackerTest, ExecInAThreadedProcessBeginsANewProcess) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 100, 200, 200, 55);
  tracker_.on_fork(200, 200, 200, 201, 56);
  os::add_process(tree_,
                  {.pid = 200, .comm = "gzip", .exe = "/bin/gzip", .cmdline = {"gzip", "-9"}});
  tracker_.on_exec(200, "gzip", 60);
  ASSERT_EQ(recorder_.processes.size(), 3u);
  EXPECT_EQ(recorder_.processes[1].end_ns, 60);
  EXPECT_EQ(recorder_.processes[1].role, "gzip before exec");
  const model::Process& gzip = recorder_.processes[2];
  EXPECT_EQ(gzip.pid, 200);
  EXPECT_EQ(gzip.role, "gzip");
  EXPECT_EQ(gzip.exe, "/bin/gzip");
  EXPECT_EQ(gzip.cmdline, "gzip -9");
  EXPECT_EQ(gzip.begin_ns, 60);
  EXPECT_EQ(gzip.parent_pid, 100);
  ASSERT_EQ(recorder_.threads.size(), 5u);
  EXPECT_EQ(recorder_.threads[2].end_ns, 60);
  EXPECT_EQ(recorder_.threads[3].end_ns, 60);
  EXPECT_EQ(tracker_.find(201), nullptr);
  EXPECT_EQ(tracker_.find(200)->process, gzip.id);
  EXPECT_EQ(tracker_.find(200)->thread, model::ThreadId{4});
  EXPECT_EQ(tracker_.find_or_adopt(200, 201, 61), nullptr);  // it ended with the old image
  // The number that the fork took for a moment is free again.
  tracker_.on_fork(100, 100, 300, 300, 70);
  EXPECT_EQ(recorder_.processes[3].role, "worker 0");
}

TEST_F(TrackerTest, ExecByAThreadThatIsNotTheMainOne) {
  tracker_.adopt(server(), 50);
  os::add_process(tree_, {.pid = 100, .comm = "new", .exe = "/new"});
  tracker_.on_exit(100, 100, 59);  // the main thread dies first; thread 101 takes over its id
  tracker_.on_exec(100, "new", 60);
  EXPECT_EQ(recorder_.processes[0].end_ns, 60);
  EXPECT_EQ(recorder_.threads[1].end_ns, 60);
  EXPECT_EQ(recorder_.processes[1].role, "main");  // what was on top stays there
  EXPECT_EQ(tracker_.find(100)->thread, model::ThreadId{2});
  EXPECT_EQ(tracker_.thread_count(), 1u);
  tracker_.on_fork(100, 100, 200, 200, 70);
  EXPECT_EQ(recorder_.processes[2].role, "worker 0");  // of the new program
}

TEST_F(TrackerTest, ALaunchedCommandIsOneProcess) {
  tracker_.adopt_launched(100, "assay", 50);
  os::add_process(tree_, {.pid = 100, .comm = "srv", .exe = "/srv (deleted)"});
  tracker_.on_exec(100, "srv", 60);
  ASSERT_EQ(recorder_.processes.size(), 1u);
  EXPECT_EQ(recorder_.processes[0].role, "main");
  EXPECT_EQ(recorder_.processes[0].exe, "/srv");
  EXPECT_EQ(recorder_.processes[0].begin_ns, 60);
  ASSERT_EQ(recorder_.threads.size(), 1u);
  EXPECT_EQ(recorder_.threads[0].name, "srv");
  tracker_.on_fork(100, 100, 200, 200, 70);
  EXPECT_EQ(recorder_.processes[1].role, "worker 0");
  tracker_.on_exec(100, "again", 80);
  EXPECT_EQ(recorder_.processes.size(), 3u);
}

TEST_F(TrackerTest, ExecOfAProcessThatIsAlreadyGone) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 100, 200, 200, 55);
  tracker_.on_exec(200, "true", 60);  // nothing to read in /proc any more
  EXPECT_EQ(recorder_.processes[2].role, "true");
  EXPECT_EQ(recorder_.processes[2].exe, "");
}

TEST_F(TrackerTest, ATidUsedAgainEndsItsFormerHolder) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 100, 100, 102, 60);
  tracker_.on_fork(100, 100, 100, 102, 80);  // the exit between was lost
  EXPECT_EQ(recorder_.threads[2].end_ns, 80);
  EXPECT_EQ(recorder_.threads[3].begin_ns, 80);
  EXPECT_EQ(tracker_.find(102)->thread, model::ThreadId{3});

  tracker_.on_fork(100, 100, 200, 200, 90);
  tracker_.on_fork(999, 999, 200, 200, 95);  // now another program's process
  EXPECT_FALSE(tracker_.contains(200));
  EXPECT_EQ(recorder_.processes[1].end_ns, 95);

  // A record that says the tid belongs elsewhere.
  EXPECT_EQ(tracker_.find_or_adopt(999, 102, 99), nullptr);
  EXPECT_EQ(recorder_.threads[3].end_ns, 99);
}

TEST_F(TrackerTest, RecordsOlderThanTheAdoptionDoNotUndoIt) {
  tracker_.adopt(server(), 50);
  tracker_.on_fork(100, 100, 100, 101, 45);  // /proc already showed this thread
  EXPECT_EQ(recorder_.threads.size(), 2u);
  EXPECT_EQ(recorder_.threads[1].begin_ns, 45);
  tracker_.on_exit(100, 101, 44);  // of a former holder of the tid
  EXPECT_NE(tracker_.find(101), nullptr);
  tracker_.on_exec(100, "srv2", 40);
  EXPECT_EQ(recorder_.processes.size(), 1u);
}

TEST_F(TrackerTest, AdoptsThreadsNobodyAnnounced) {
  tracker_.adopt(server(), 50);
  const TrackedTask* task = tracker_.find_or_adopt(100, 150, 60);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->thread, model::ThreadId{2});
  EXPECT_EQ(recorder_.threads[2].begin_ns, 60);
  EXPECT_EQ(tracker_.find_or_adopt(100, 150, 61)->thread, model::ThreadId{2});
  EXPECT_EQ(tracker_.find_or_adopt(999, 999, 62), nullptr);
  EXPECT_EQ(tracker_.find_or_adopt(100, -1, 62), nullptr);  // the kernel's value for a dead thread
  EXPECT_EQ(tracker_.find_or_adopt(100, 0, 62), nullptr);
}

TEST_F(TrackerTest, TheLastSwitchOfAnExitedThreadDoesNotReviveIt) {
  tracker_.adopt(server(), 50);
  tracker_.on_exit(100, 101, 60);
  EXPECT_EQ(tracker_.find_or_adopt(100, 101, 61), nullptr);
  tracker_.on_fork(100, 100, 100, 101, 70);  // but a fork does
  EXPECT_NE(tracker_.find_or_adopt(100, 101, 71), nullptr);
}

TEST_F(TrackerTest, AForkStormLeavesNothingBehind) {
  tracker_.adopt(server(), 0);
  constexpr int kForks = 30'000;
  for (int i = 0; i < kForks; ++i) {
    pid_t id = 1000 + i % 5'000;
    TimeNs time = 10 + 2 * i;
    bool process = i % 10 == 0;
    tracker_.on_fork(100, 100, process ? id : 100, id, time);
    tracker_.on_exit(process ? id : 100, id, time + 1);
  }
  EXPECT_EQ(tracker_.thread_count(), 2u);
  EXPECT_EQ(tracker_.process_count(), 1u);
  EXPECT_EQ(recorder_.threads.size(), 2u + kForks);
  EXPECT_EQ(recorder_.processes.size(), 1u + kForks / 10);
  for (const auto& [id, thread] : recorder_.threads) {
    if (thread.tid >= 1000) {
      ASSERT_EQ(thread.end_ns, thread.begin_ns + 1);
    }
  }
}

TEST_F(TrackerTest, ResyncMendsWhatLostRecordsBroke) {
  tracker_.adopt(server(), 50);
  os::add_process(tree_, {.pid = 100, .comm = "srv2", .exe = "/srv", .threads = {{105, "io-5"}}});
  os::add_process(tree_, {.pid = 200, .parent = 100, .comm = "gzip", .exe = "/bin/gzip"});
  os::add_process(tree_, {.pid = 300, .parent = 200, .comm = "srv3", .exe = "/srv"});
  EXPECT_EQ(tracker_.resync(60), 3u);
  EXPECT_THAT(tracker_.pids(), ElementsAre(100, 200, 300));
  EXPECT_EQ(tracker_.process(200)->role, "gzip");
  EXPECT_EQ(tracker_.thread(105)->name, "io-5");
  EXPECT_NE(tracker_.find(101), nullptr);  // missing once: its exit record may be on the way
  EXPECT_EQ(tracker_.resync(70), 0u);
  EXPECT_EQ(tracker_.find(101), nullptr);
  EXPECT_EQ(recorder_.threads[1].end_ns, 60);
  tree_.remove("100");
  tree_.remove("200");
  tree_.remove("300");
  tracker_.resync(80);
  tracker_.resync(90);
  EXPECT_THAT(tracker_.pids(), IsEmpty());
}

TEST_F(TrackerTest, RecordsOfStrangersAreIgnored) {
  tracker_.adopt(server(), 50);
  tracker_.on_comm(999, "x");
  tracker_.on_exec(999, "x", 60);
  tracker_.on_exit(999, 999, 60);
  tracker_.on_exit(999, 101, 60);  // the right tid of the wrong process
  EXPECT_EQ(tracker_.thread_count(), 2u);
  tracker_.on_comm(100, "renamed");
  EXPECT_EQ(recorder_.processes[0].comm, "renamed");
}

}  // namespace
}  // namespace assay::target
