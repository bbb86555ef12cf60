#include "analysis/idle/idle_sites.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

const IdleDecision* of_pool(const Report& report, const std::string& pool) {
  for (const IdleDecision& one : report.idle_decisions) {
    if (one.pool == pool) return &one;
  }
  return nullptr;
}

// Every wait of the first thread is ended by the second; so says the run.
void ends_waits(FakeServer& server, model::ThreadId waits, model::ThreadId ends,
                const std::vector<std::string>& from = {}) {
  model::StackId stack = server.run().stack(from);
  for (model::Wait& wait : server.run().edit_waits()) {
    if (wait.thread != waits) continue;
    wait.waker = ends;
    wait.waker_stack = stack;
  }
}

const std::vector<std::string> kPop{"libc.so.6:clone3", "Dispatcher::loop", "Ring::pop",
                                    "libc.so.6:syscall", "k:futex_wait"};
const std::vector<std::string> kPopWork{"libc.so.6:clone3", "Dispatcher::loop", "Ring::pop",
                                        "copy_out"};
const std::vector<std::string> kDeliver{"libc.so.6:clone3", "Dispatcher::loop", "deliver"};

// Taking an item out of a queue is a part of a light pool's work. Whether it is 2 or 15 % of the
// few samples is chance; that the loop has no other wait is not.
TEST(IdleSites, AQueueThatTakesAPartOfTheWorkIsStillWhereTheLoopWaits) {
  for (double part : {0.02, 0.08, 0.15}) {
    FakeServer server;
    auto dispatch = server.thread(
        "d", "d", {runs(kPopWork, 10 * part), runs(kDeliver, 10 * (1 - part)), waits(kPop, 10)});
    auto other = server.thread("o", "o", {runs(kCompute, 5), waits(kTakeWork, 5)});
    ends_waits(server, dispatch, other);
    Report report = server.report();
    const IdleDecision* one = of_pool(report, "d");
    ASSERT_TRUE(one);
    EXPECT_TRUE(one->idle()) << part << " " << describe(one->reason).id;
    EXPECT_NEAR(one->branch_work, part, 0.02);
    EXPECT_EQ(one->ended_by_target, one->candidates);
    EXPECT_NEAR(one->share, 0.25, 0.01);
  }
}

// The same shares where the branch first wakes the thread that answers.
TEST(IdleSites, ABranchThatWakesTheOneItWaitsForAsks) {
  FakeServer server;
  auto asker = server.thread("d", "d", {runs(kPopWork, 0.5), runs(kDeliver, 9.5), waits(kPop, 10)});
  auto other = server.thread("o", "o", {runs(kCompute, 10), waits(kTakeWork, 10)});
  ends_waits(server, asker, other);
  std::vector<std::string> wakes = kPopWork;
  wakes.back() = "wake_other";
  ends_waits(server, other, asker, wakes);
  const Report report = server.report();
  const IdleDecision* one = of_pool(report, "d");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->reason, IdleReason::asks_first);
}

// Threads without names are one pool; they are still told apart by where they start.
TEST(IdleSites, AMainThreadThatOnlyWaitsDoesNotHideItsWorkersLoop) {
  FakeServer server;
  server.thread("server", "server", {runs(kCompute, 3), waits(kTakeWork, 7)});
  server.thread("server", "server",
                {waits({"_start", "main", "run", "libc.so.6:pthread_join", "k:futex_wait"}, 9000)});
  const Report report = server.report();
  ASSERT_FALSE(report.idle_decisions.empty());
  for (const IdleDecision& one : report.idle_decisions) EXPECT_TRUE(one.idle()) << one.site;
}

TEST(IdleSites, WhereOnlyClientsAreConnectedAPollThatTheOutsideEndsWaitsForThem) {
  for (bool asks : {false, true}) {
    FakeServer server;
    // A handler that polls its connection, in a branch that works.
    std::vector<std::string> poll{"main",      "loop",           "serve",
                                  "sock_recv", "libc.so.6:poll", "k:do_sys_poll"};
    std::vector<std::string> parse{"main", "loop", "serve", "sock_recv", "parse"};
    server.thread("w", "w", {runs({"main", "loop", "work"}, 6), runs(parse, 3), waits(poll, 8)});
    auto other = server.thread("o", "o", {runs(kCompute, 1), waits(kTakeWork, 1)});
    ends_waits(server, other, other);  // so that wakers are known
    server.level(model::SeriesScope::socket, "connections", 4, "port 80 inbound");
    if (asks) server.level(model::SeriesScope::socket, "connections", 4, "to port 81 outbound");
    const Report report = server.report();
    const IdleDecision* one = of_pool(report, "w");
    ASSERT_TRUE(one);
    EXPECT_EQ(one->reason, asks ? IdleReason::branch_works : IdleReason::clients_only);
  }
}

// A connection that is closed before it is looked at is like the others of its place.
TEST(IdleSites, ConnectionsThatAreKnownTellOfThoseThatAreGone) {
  const std::vector<std::string> read{"main", "loop", "serve", "libc.so.6:recv", "k:sk_wait_data"};
  for (auto known : {model::FdKind::socket_accepted, model::FdKind::socket_connected}) {
    FakeServer server;
    server.thread("w", "w",
                  {runs({"main", "loop", "work"}, 6), runs({"main", "loop", "serve", "parse"}, 3),
                   receives(read, 4, known), receives(read, 4, model::FdKind::socket_stream)});
    const Report report = server.report();
    ASSERT_FALSE(report.idle_decisions.empty());
    for (const IdleDecision& one : report.idle_decisions) {
      EXPECT_EQ(one.idle(), known == model::FdKind::socket_accepted) << describe(one.reason).id;
    }
  }
}

// The sleeps of a thread that nobody waits for are not those of a request.
TEST(IdleSites, AThreadOnItsOwnClockIsIdleBetween) {
  const std::vector<std::string> sleep{"libc.so.6:clone3", "tick", "libc.so.6:clock_nanosleep",
                                       "k:hrtimer_nanosleep"};
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 8), waits(kTakeWork, 2)});
  auto ticker = server.thread(
      "t", "t", {runs({"libc.so.6:clone3", "tick", "sweep"}, 0.5), waits(sleep, 9.5)});
  {
    const Report report = server.report();
    const IdleDecision* one = of_pool(report, "t");
    ASSERT_TRUE(one);
    EXPECT_EQ(one->reason, IdleReason::own_clock);
  }
  // One that hands on what it finds is a stage of the requests.
  auto next = server.thread("n", "n", {runs(kCompute, 5), waits(kTakeWork, 5)});
  ends_waits(server, next, ticker);
  const Report report = server.report();
  const IdleDecision* one = of_pool(report, "t");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->reason, IdleReason::sleeps_at_work);
}

TEST(IdleReason, EveryRowSaysSomethingOfItsOwn) {
  for (const IdleReasonRow& row : idle_reasons()) {
    EXPECT_FALSE(row.id.empty());
    EXPECT_FALSE(row.because.empty() || row.because.ends_with('.')) << row.id;
    EXPECT_EQ(row.idle, row.kind < IdleReason::known_call) << row.id;
  }
}

}  // namespace
}  // namespace assay::analysis
