// One test per rule of verdict_rules.cpp.
#include "analysis/verdict/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"
#include "analysis/wording.h"

namespace assay::analysis {
namespace {

using model::SeriesScope;
using testing::HasSubstr;
using testing::Not;

TEST(Verdict, Cpu) {
  Report report = busy_server().report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::cpu);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("compute"));
  EXPECT_GT(report.verdict.confidence, 0.5);
  EXPECT_FALSE(report.verdict.numbers.empty());
  EXPECT_FALSE(report.verdict.next_command.empty());
}

TEST(Verdict, Allocator) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 6), runs(kMalloc, 3), waits(kTakeWork, 0.5)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::allocator);
}

TEST(Verdict, Spin) {
  FakeServer server;
  auto spin = below_loop({"handle", "SpinLock::lock()"});
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 6), runs(spin, 3), waits(kTakeWork, 0.5)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::spin);
}

TEST(Verdict, NetworkStack) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 4), runs(kSend, 5), waits(kTakeWork, 0.5)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::network_stack);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("100 % of that for reply through send"));
}

// Threads that mostly queue for a CPU or, inside a request, for one another.
TEST(Verdict, ThreadsThatWaitForOneAnotherAndForACpuWantCpus) {
  auto kind_when_host_is_busy = [](double share, double queued_ms) {
    FakeServer server;
    auto answer = below_loop({"handle", "compute", "await_answer", "libc.so.6:pthread_cond_wait",
                              "k:do_futex", "k:futex_wait_queue"});
    for (int i = 0; i < 4; ++i) {
      server.thread("w" + std::to_string(i), "w-*",
                    {runs(kCompute, 2.75), queues(queued_ms), waits(answer, 7.25 - queued_ms)});
    }
    server.host_busy(share);
    return server.kind();
  };
  EXPECT_EQ(kind_when_host_is_busy(0.88, 4.4), VerdictKind::cpu);
  EXPECT_NE(kind_when_host_is_busy(0.6, 4.4), VerdictKind::cpu);
  EXPECT_NE(kind_when_host_is_busy(0.88, 0.4), VerdictKind::cpu);
}

TEST(Verdict, SerialStage) {
  FakeServer server(8, 4);
  server.thread("acceptor", "acceptor", {runs(kCompute, 9.7), waits(kTakeWork, 0.3)});
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 2), waits(kTakeWork, 8)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::serial_stage);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("acceptor"));
}

// What to change in a stage that does little but allocate is the allocating.
TEST(Verdict, ASerialStageThatMostlyAllocatesIsTheAllocator) {
  FakeServer server(8, 4);
  auto allocate = below_loop({"handle", "libc.so.6:malloc", "libc.so.6:_int_malloc"});
  server.thread("applier", "applier",
                {runs(allocate, 8), runs(kCompute, 1.7), waits(kTakeWork, 0.3)});
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 2), waits(kTakeWork, 8)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::allocator);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("applier"));
}

// Threads that hand work on never fill the CPUs, but what they lack is CPUs.
TEST(Verdict, ManyThreadsThatQueueForTheCpusAreCpuBound) {
  FakeServer server;
  for (int i = 0; i < 6; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 2.2), queues(5), waits(kTakeWork, 2.8)});
  }
  server.host_busy(0.8);
  EXPECT_EQ(server.kind(), VerdictKind::cpu);
  FakeServer calm;
  for (int i = 0; i < 6; ++i) {
    calm.thread("w" + std::to_string(i), "w-*",
                {runs(kCompute, 2.2), queues(0.5), waits(kTakeWork, 7.3)});
  }
  calm.host_busy(0.8);
  EXPECT_NE(calm.kind(), VerdictKind::cpu);
}

// One busy process per CPU is the CPU, not a stage, though each is alone in its pool.
TEST(Verdict, AsManyBusyStagesAsCpusAreTheCpu) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    auto process = server.run().add_process(200 + i, "/opt/server", "worker " + std::to_string(i));
    server.thread_of(process, "worker-" + std::to_string(i), "",
                     {runs(kCompute, 7), queues(2.5), waits(kTakeWork, 0.5)});
  }
  server.host_busy(0.98);
  server.load("throughput_per_s", "1000");
  server.grows(SeriesScope::load, "requests", 1000);
  server.grows(SeriesScope::load, "generator_cpu", 0.5e9);
  EXPECT_EQ(server.kind(), VerdictKind::cpu);
}

// A lock that is taken thousands of times a request costs CPU time before anyone waits for it.
TEST(Verdict, CpuTimeSpentOnLocksIsTheLock) {
  FakeServer server;
  auto locking = below_loop({"handle", "count", "libc.so.6:pthread_mutex_lock"});
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(locking, 5), runs(kCompute, 4.7), waits(kTakeWork, 0.3)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::lock);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("taking and releasing locks"));
}

// A poller is busy whatever the load.
TEST(Verdict, APollingThreadSpins) {
  FakeServer server(8, 4);
  auto poll = below_loop({"Runner::step", "SharedQueue::try_pop"});
  server.thread("worker", "worker", {runs(poll, 6), runs(kCompute, 3.9), waits(kTakeWork, 0.1)});
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::spin);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("worker"));
}

// An open loop that is answered in full is not starved, even on a full machine.
TEST(Verdict, UnderloadedBesideABusyNeighbour) {
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 0.3), queues(1), waits(kTakeWork, 9)});
  server.host_busy(0.99);
  EXPECT_EQ(server.kind(), VerdictKind::scheduler);
  server.load("mode", "open");
  server.load("rate", "200");
  server.load("throughput_per_s", "200");
  EXPECT_EQ(server.kind(), VerdictKind::underloaded);
}

TEST(Verdict, Lock) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kTakeLock, 6, 0x1000), waits(kTakeWork, 1)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::lock);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("Table::put"));
  ASSERT_FALSE(report.locks.empty());
  EXPECT_EQ(report.locks[0].waiters[0].function, "Table::put");
}

TEST(Verdict, Disk) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kWriteDisk, 6), waits(kTakeWork, 1)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::disk);
}

TEST(Verdict, Network) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kSendBlocked, 3), waits(kTakeWork, 2)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::network);
}

TEST(Verdict, Downstream) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kAskBackend, 6), waits(kTakeWork, 1)});
  }
  Report report = server.report();
  EXPECT_EQ(report.verdict.kind, VerdictKind::downstream);
  EXPECT_THAT(report.verdict.sentence, HasSubstr("ask_backend"));
}

// An event loop waits for its backend in epoll, like for work: only latency tells.
TEST(Verdict, DownstreamOfAnEventLoop) {
  FakeServer server;
  server.thread("loop", "loop",
                {runs({"main", "Loop::run", "on_event"}, 0.4),
                 waits({"main", "Loop::run", "libc.so.6:epoll_wait", "k:ep_poll"}, 3)});
  server.load("mode", "closed");
  server.load("connections", "16");
  server.load("p50_ns", "20000000");
  server.grows(SeriesScope::load, "requests", 800);
  server.level(SeriesScope::socket, "connections", 4, "to port 9000 outbound");
  EXPECT_EQ(server.kind(), VerdictKind::downstream);
}

TEST(Verdict, Timer) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), waits(kSleep, 2), waits(kTakeWork, 2)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::timer);
}

TEST(Verdict, SchedulerBecauseOfANeighbour) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 2), queues(3), waits(kTakeWork, 1)});
  }
  server.host_busy(0.99);
  EXPECT_EQ(server.kind(), VerdictKind::scheduler);
}

// Half of a server is no server: its part has the verdict of the whole.
TEST(Verdict, OfAPartIsThatOfTheWhole) {
  FakeServer server;
  for (int i = 0; i < 2; ++i)
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 9.5), waits(kTakeWork, 0.5)});
  server.thread("quiet", "quiet", {runs(kCompute, 0.01), waits(kTakeLock, 9.99, 0x1000)});
  Report whole = server.report();
  ASSERT_EQ(whole.verdict.kind, VerdictKind::cpu);
  EXPECT_FALSE(whole.verdict.of_whole_run);
  Options only;
  only.selection.pools = {"quiet"};
  Report part = server.report(only);
  EXPECT_EQ(part.threads.size(), 1u);
  EXPECT_EQ(part.verdict.kind, VerdictKind::cpu);
  EXPECT_EQ(part.verdict.confidence, whole.verdict.confidence);
  EXPECT_TRUE(part.verdict.of_whole_run);
  EXPECT_EQ(part.verdict.sentence, "Of the whole run: " + whole.verdict.sentence);
}

// A report must not say in one place that the CPUs are short and in another that they are not.
TEST(Verdict, WhenCpusAreShortEverythingSaysSo) {
  FakeServer server;
  auto sending = below_loop({"handle", "libc.so.6:send", "k:tcp_sendmsg"});
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 0.5), runs(sending, 1.5), queues(3), waits(kTakeWork, 1)});
  }
  server.host_busy(0.99);
  Report report = server.report();
  ASSERT_EQ(report.verdict.kind, VerdictKind::scheduler);
  for (const NotBottleneck& one : report.not_bottlenecks)
    EXPECT_THAT(one.text, Not(HasSubstr("not what limits"))) << one.what;
  ASSERT_FALSE(report.findings.empty());
  const Finding& first = report.findings.front();
  EXPECT_EQ(first.id, "noisy-neighbour") << "the verdict's cause comes first";
  // All of the host's 2 CPUs instead of 0.67.
  EXPECT_NEAR(first.gain.upper_bound.value_or(0), 2, 0.02);
  EXPECT_THAT(first.gain.text, HasSubstr("if the target had all CPUs"));
  for (const Finding& finding : report.findings) {
    if (finding.of != ShareOf::cpu_time) continue;
    EXPECT_THAT(finding.gain.text, HasSubstr("with the CPUs it gets now")) << finding.id;
  }
}

// Queueing alone is no verdict: on few CPUs wake-ups always wait a little.
TEST(Verdict, QueueingWithoutACauseIsNotTheScheduler) {
  FakeServer server;
  for (int i = 0; i < 2; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 2), queues(2), waits(kTakeWork, 4)});
  }
  server.host_busy(0.5);
  EXPECT_NE(server.kind(), VerdictKind::scheduler);
}

// It must lose to an explanation that accounts for more time.
TEST(Verdict, ALockExplainsMoreThanTheRunQueue) {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 1), queues(1), waits(kTakeLock, 6, 0x1000), waits(kTakeWork, 1)});
  }
  server.host_busy(0.99);
  EXPECT_EQ(server.kind(), VerdictKind::lock);
}

TEST(Verdict, Throttled) {
  FakeServer server = busy_server();
  server.grows(SeriesScope::cgroup, "periods", 10, "/lab");
  server.grows(SeriesScope::cgroup, "throttled_periods", 6, "/lab");
  EXPECT_EQ(server.kind(), VerdictKind::throttled);
}

// The load generator on the same machine: the target's utilisation alone understates it.
TEST(Verdict, CpuWhenTheGeneratorSharesTheMachine) {
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 3), queues(1), waits(kTakeWork, 6)});
  }
  server.host_busy(0.98);
  server.load("mode", "closed");
  server.load("connections", "64");
  server.grows(SeriesScope::load, "requests", 1000);
  server.grows(SeriesScope::load, "generator_cpu", 0.7e9);
  EXPECT_EQ(server.kind(), VerdictKind::cpu);
}

TEST(Verdict, Underloaded) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 1), waits(kTakeWork, 9)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::underloaded);
}

TEST(Verdict, ConcurrencyLimited) {
  FakeServer server(8, 4);
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*", {runs(kCompute, 1), waits(kTakeWork, 9)});
  }
  server.load("mode", "closed");
  server.load("connections", "2");
  server.load("p50_ns", "1000000");
  server.grows(SeriesScope::load, "requests", 400);
  EXPECT_EQ(server.kind(), VerdictKind::concurrency_limited);
}

TEST(Verdict, Mixed) {
  FakeServer server(8, 4);
  auto future =
      below_loop({"handle", "Pool::wait_for", "libc.so.6:pthread_cond_wait", "k:futex_wait_queue"});
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(kCompute, 3), waits(future, 4), waits(kTakeWork, 1)});
  }
  EXPECT_EQ(server.kind(), VerdictKind::mixed);
}

// A launched command takes all that follows it.
TEST(NextStep, OptionsStandBeforeACommand) {
  FakeServer server = busy_server();
  server.run().edit().info.target = "-- ./server --fast";
  std::string next = server.report().verdict.next_command;
  EXPECT_THAT(next, HasSubstr("-o after.assay -- ./server --fast"));
  EXPECT_THAT(next, Not(HasSubstr("--fast --for")));
}

TEST(NextStep, TheSameLoadAndHeapAreAskedForAgain) {
  FakeServer server = busy_server();
  server.load("what", "http://127.0.0.1:80/ -c 4 -H 'a: b'");
  server.load("throughput_per_s", "1000");
  server.run().edit().info.target = "--port 80";
  Report report = server.report();
  report.heap.present = true;
  auto next = [&](VerdictKind kind) { return next_step(report, kind, {}).command; };
  EXPECT_THAT(
      next(VerdictKind::lock),
      HasSubstr(R"(--port 80 --load 'http://127.0.0.1:80/ -c 4 -H '\''a: b'\''' --heap --for)"));
  EXPECT_THAT(next(VerdictKind::underloaded), HasSubstr("--load URL"))
      << "another load than it had";
  report.info.target = "-- ./server";
  EXPECT_THAT(next(VerdictKind::withheld), HasSubstr(R"(b'\''' --heap --for 30s -- ./server)"));
  EXPECT_THAT(
      next(VerdictKind::mixed),
      HasSubstr(R"(assay sweep --load 'http://127.0.0.1:80/ -H '\''a: b'\''' --concurrency)"));
  report.workload.what = "http://h/ --connections=16 --rates 5 --rate 100 -c";
  EXPECT_THAT(next(VerdictKind::mixed), HasSubstr("--load 'http://h/ --rates 5 -c' --concurrency"));
}

// "Most" is more than half.
TEST(Words, OfTheLargestPart) {
  EXPECT_EQ(largest_part(0.51), "most of it");
  EXPECT_EQ(largest_part(0.11), "the largest part");
  FakeServer server;
  for (int i = 0; i < 4; ++i) {
    server.thread("w" + std::to_string(i), "w-*",
                  {runs(below_loop({"first"}), 4), runs(below_loop({"second"}), 3),
                   runs(below_loop({"third"}), 3), queues(10), waits(kTakeWork, 0.5)});
  }
  EXPECT_THAT(server.report().verdict.sentence, HasSubstr("the largest part in first"));
}
TEST(Verdict, EveryKindHasANextStep) {
  for (const VerdictKindRow& row : verdict_kinds()) {
    NextStep next = next_step(Report{}, row.kind, {});
    EXPECT_FALSE(next.words.empty()) << row.id;
    EXPECT_FALSE(next.command.empty()) << row.id;
    EXPECT_EQ(next.command.find("{}"), std::string::npos) << "the target is filled in: " << row.id;
  }
}

}  // namespace
}  // namespace assay::analysis
