#include "analysis/time/idle_judge.h"

#include <gtest/gtest.h>

#include "analysis/testing/fake_server.h"

namespace assay::analysis {
namespace {

// Idle and blocked shares of the run's thread time.
struct Shares {
  double idle, blocked;
};
Shares shares(const FakeServer& server) {
  Report report = server.report();
  for (const ThreadTime& thread : report.threads) {
    EXPECT_EQ(thread.time.sum_ns(), thread.time.wall_ns) << thread.name;
  }
  auto wall = static_cast<double>(report.thread_time.wall_ns);
  return {static_cast<double>(report.thread_time.idle_ns) / wall,
          static_cast<double>(report.thread_time.blocked_total_ns()) / wall};
}

// A master has the name of its workers. One poll and a sleep a second are no wait for an answer,
// whatever its stack looks like.
TEST(IdleJudge, AMasterBesideItsWorkersKeepsHouse) {
  FakeServer server(1, 4);
  const std::vector<std::string> polls{"main", "arbiter", "libc.so.6:select", "k:do_select"};
  const std::vector<std::string> sleeps{"main", "arbiter", "check", "libc.so.6:epoll_wait",
                                        "k:ep_poll"};
  auto worker = server.run().add_process(200, "/opt/server", "worker 0");
  server.thread_of(worker, "server", "server", {runs({"main", "serve", "work"}, 9),
                                                waits({"main", "serve", "libc.so.6:accept",
                                                       "k:inet_csk_accept"},
                                                      1)});
  server.thread("server", "server", {waits(polls, 6), waits(sleeps, 4)});
  Report report = server.report();
  for (const ThreadTime& thread : report.threads) {
    if (thread.pid == 200) continue;
    EXPECT_EQ(thread.time.idle_ns, thread.time.wall_ns);
  }
}

struct LoopCase {
  const char* name;
  std::vector<std::string> wait;
};

class KnownLoops : public testing::TestWithParam<LoopCase> {};

// The work is done in the same frame as the wait, so that the shape alone could not tell.
TEST_P(KnownLoops, AreIdle) {
  FakeServer server;
  server.thread("t", "t", {runs({"main", "work"}, 1), waits(GetParam().wait, 9)});
  Shares s = shares(server);
  EXPECT_NEAR(s.idle, 0.9, 0.01);
  EXPECT_NEAR(s.blocked, 0, 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, KnownLoops,
    testing::Values(
        LoopCase{"redis",
                 {"main", "aeMain", "aeProcessEvents", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"libuv", {"main", "uv_run", "uv__io_poll", "libc.so.6:epoll_pwait", "k:ep_poll"}},
        LoopCase{
            "libevent",
            {"main", "event_base_loop", "epoll_dispatch", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{
            "asio",
            {"main", "boost::asio::io_context::run()",
             "boost::asio::detail::scheduler::do_run_one(x)",
             "boost::asio::detail::epoll_reactor::run(y)", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"drogon",
                 {"main", "trantor::EventLoop::loop()", "trantor::EpollPoller::poll(int)",
                  "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{
            "grpc_cq",
            {"main", "grpc::CompletionQueue::AsyncNextInternal(x)", "grpc_completion_queue_next",
             "cq_next", "pollset_work", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{
            "event_engine",
            {"libc.so.6:clone3",
             "grpc_event_engine::experimental::WorkStealingThreadPool::ThreadState::ThreadBody()",
             "grpc_event_engine::experimental::WorkStealingThreadPool::WorkSignal::WaitWithTimeout("
             "x)",
             "absl::CondVar::WaitCommon(x)", "libc.so.6:syscall", "k:futex_wait_queue"}},
        LoopCase{"nginx",
                 {"main", "ngx_process_events_and_timers", "ngx_epoll_process_events",
                  "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"postgres",
                 {"main", "PostgresMain", "ReadCommand", "SocketBackend", "pq_getbyte",
                  "secure_read", "WaitEventSetWait", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"go",
                 {"runtime.mstart", "runtime.schedule", "runtime.findRunnable", "runtime.stopm",
                  "runtime.futexsleep", "runtime.futex.abi0", "k:futex_wait_queue"}},
        LoopCase{"tokio",
                 {"std::thread",
                  "tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout",
                  "tokio::runtime::io::driver::Driver::turn", "mio::poll::Poll::poll",
                  "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"python",
                 {"python3.11:_PyEval_EvalFrameDefault", "python3.11:select_epoll_poll_impl",
                  "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{
            "memcached",
            {"main", "event_base_loop", "libevent.so:fn_1", "libc.so.6:epoll_wait", "k:ep_poll"}},
        LoopCase{"netty",
                 {"libjava.so:Java_sun_nio_ch_EPoll_wait", "libc.so.6:epoll_wait", "k:ep_poll"}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Idle, APoolThatNoRuleKnowsIsToldByItsShape) {
  FakeServer server;
  server.thread("w", "w", {runs(kCompute, 3), waits(kTakeWork, 7)});
  EXPECT_NEAR(shares(server).idle, 0.7, 0.01);
}

TEST(Idle, ALoopThatWaitsInItsOwnFrame) {
  FakeServer server;
  server.thread("w", "w",
                {runs({"main", "Server::run", "on_event"}, 3),
                 waits({"main", "Server::run", "libc.so.6:epoll_wait", "k:ep_poll"}, 7)});
  EXPECT_NEAR(shares(server).idle, 0.7, 0.01);
}

TEST(Idle, AThreadPerConnectionWaitsForItsNextRequest) {
  FakeServer server;
  server.thread("c", "c",
                {runs({"start_thread", "serve", "handle"}, 2),
                 runs({"start_thread", "serve", "libc.so.6:recv", "k:tcp_recvmsg"}, 1),
                 waits({"start_thread", "serve", "libc.so.6:recv", "k:sk_wait_data"}, 7)});
  EXPECT_NEAR(shares(server).idle, 0.7, 0.01);
}

// Where the work is done elsewhere the shape says nothing; which way the connection was made does.
TEST(Idle, AConnectionThatCameInBringsWorkAndOneThatWentOutBringsAnswers) {
  const std::vector<std::string> read{"start_thread", "Reader::next", "libc.so.6:recv",
                                      "k:sk_wait_data"};
  const std::vector<std::string> work{"start_thread", "Reader::next", "decode"};
  for (auto [fd, idle] : {std::pair(model::FdKind::socket_accepted, 0.9),
                          std::pair(model::FdKind::socket_connected, 0.0)}) {
    FakeServer server;
    server.thread("r", "r", {runs(work, 1), receives(read, 9, fd)});
    EXPECT_NEAR(shares(server).idle, idle, 0.01) << static_cast<int>(fd);
  }
  FakeServer kept_alive;
  kept_alive.thread("r", "r",
                    {runs(work, 200), receives(read, 1800, model::FdKind::socket_connected)});
  EXPECT_NEAR(shares(kept_alive).idle, 0.9, 0.01) << "nothing was asked on it";
}

TEST(Idle, AWaitUnderARequestIsNeverIdle) {
  for (const auto& wait : {kAskBackend, kSleep, kTakeLock, kWriteDisk,
                           below_loop({"handle", "Future::get", "libc.so.6:pthread_cond_wait",
                                       "k:futex_wait_queue"})}) {
    FakeServer server;
    server.thread("w", "w", {runs(kCompute, 2), waits(wait, 6), waits(kTakeWork, 2)});
    Shares s = shares(server);
    EXPECT_NEAR(s.idle, 0.2, 0.01) << wait.back();
    EXPECT_NEAR(s.blocked, 0.6, 0.01) << wait.back();
  }
}

// A proxy's handler does little but ask: its sending shows that the branch works.
TEST(Idle, AHandlerThatOnlyAsksItsBackendIsNotIdle) {
  FakeServer server;
  server.thread(
      "w", "w",
      {runs(below_loop({"handle", "ask_backend", "libc.so.6:send", "k:tcp_sendmsg"}), 1),
       waits(kAskBackend, 7), runs(below_loop({"read_request", "parse"}), 1), waits(kTakeWork, 1)});
  EXPECT_NEAR(shares(server).blocked, 0.7, 0.01);
}

// A short request wakes its worker each time: going to sleep and getting up again then costs a good
// part of what the request does, and has no name but the system call's.
TEST(Idle, WhatWaitingCostsIsNoWork) {
  const std::vector<std::string> call{"main", "Worker::run", "Worker::next", "libc.so.6:syscall"};
  auto into = [&](std::initializer_list<std::string> kernel) {
    std::vector<std::string> stack = call;
    stack.insert(stack.end(), kernel);
    return stack;
  };
  FakeServer server;
  server.thread("w", "w",
                {runs({"main", "Worker::run", "Worker::step"}, 1), runs(call, 0.2),
                 runs(into({"k:do_syscall_64", "k:exit_to_user_mode_loop"}), 0.2),
                 waits(into({"k:do_syscall_64", "k:__x64_sys_futex", "k:futex_wait"}), 8.6)});
  Shares s = shares(server);
  EXPECT_NEAR(s.idle, 0.86, 0.01);
  EXPECT_NEAR(s.blocked, 0, 0.01);
}

// The same calls made for another purpose are work: the branch does something.
TEST(Idle, WhatABranchDoesBesideItsWaitIsWork) {
  auto below = [](std::initializer_list<std::string> rest) {
    std::vector<std::string> stack{"main", "Worker::run", "Worker::ask"};
    stack.insert(stack.end(), rest);
    return stack;
  };
  FakeServer server;
  server.thread("w", "w",
                {runs({"main", "Worker::run", "Worker::step"}, 1),
                 runs(below({"Worker::wake", "libc.so.6:syscall", "k:do_syscall_64"}), 0.4),
                 waits(below({"Worker::sleep", "libc.so.6:syscall", "k:futex_wait"}), 8.6)});
  EXPECT_NEAR(shares(server).blocked, 0.86, 0.01);
}

TEST(Idle, ACallToAnotherServiceIsNeverIdle) {
  FakeServer server;
  server.thread("w", "w",
                {runs({"main", "PQexec", "parse"}, 1),
                 waits({"main", "PQexec", "PQgetResult", "libc.so.6:poll", "k:do_sys_poll"}, 9)});
  EXPECT_NEAR(shares(server).blocked, 0.9, 0.01);
}

TEST(Idle, ALoopThatCallsAHandlerWhichWaitsIsNotIdleThere) {
  FakeServer server;
  std::vector<std::string> deep{"main", "uv_run", "uv__io_poll"};
  for (int i = 0; i < 6; ++i) deep.push_back("handler_" + std::to_string(i));
  auto wait = deep, work = deep;
  wait.insert(wait.end(), {"libc.so.6:recv", "k:sk_wait_data"});
  work.push_back("parse");
  server.thread("w", "w",
                {runs(work, 3), waits(wait, 5),
                 waits({"main", "uv_run", "uv__io_poll", "libc.so.6:epoll_wait", "k:ep_poll"}, 2)});
  Shares s = shares(server);
  EXPECT_NEAR(s.idle, 0.2, 0.01);
  EXPECT_NEAR(s.blocked, 0.5, 0.01);
}

TEST(Idle, HousekeepingAndParkedThreadsAreIdle) {
  FakeServer server;
  server.thread(
      "timer", "timer",
      {waits({"start_thread", "tick", "libc.so.6:clock_nanosleep", "k:hrtimer_nanosleep"}, 1000)});
  server.thread(
      "parked", "parked",
      {waits({"start_thread", "Pool::run", "libc.so.6:pthread_cond_wait", "k:futex_wait_queue"},
             8000)});
  EXPECT_NEAR(shares(server).idle, 1, 0.001);
}

TEST(Idle, ALockIsNeverIdleByShape) {
  FakeServer server;
  server.thread("w", "w",
                {waits({"main", "libc.so.6:pthread_mutex_lock", "k:futex_wait_queue"}, 1000)});
  EXPECT_NEAR(shares(server).blocked, 1, 0.001);
}

// A profile of contention has no samples: where all of its waiting is in one place, that is no
// rest.
TEST(Idle, AnImportedProfileWithoutSamplesShowsNoRest) {
  for (const char* leaf : {"sync.(*Mutex).Unlock", "runtime.selectgo", "wait_somehow"}) {
    FakeServer server;
    server.run().edit().info.backend = "import: pprof";
    server.thread("t", "t", {waits({"net/http.(*conn).serve", "main.work", leaf}, 1000)});
    Shares s = shares(server);
    EXPECT_NEAR(s.blocked, 1, 0.001) << leaf;
    EXPECT_NEAR(s.idle, 0, 0.001) << leaf;
  }
}

// The kernel tells of waits for a signal; of a wait that nothing is known of it may be any.
TEST(Idle, AWaitOfNoKnownKindIsNotIdleByShape) {
  for (auto [leaf, idle] :
       {std::pair("some_library_call", 0.0), std::pair("k:do_sigtimedwait", 1.0)}) {
    FakeServer server;
    server.thread("worker", "worker", {runs(kCompute, 5), waits(kTakeWork, 5)});
    server.thread("s", "s", {waits({"main", "stay", leaf}, 1000)});
    Report report = server.report();
    auto of_second = static_cast<double>(report.thread_time.idle_ns) / 8e9 - 0.5;
    EXPECT_NEAR(of_second, idle, 0.01) << leaf;
  }
}

}  // namespace
}  // namespace assay::analysis
