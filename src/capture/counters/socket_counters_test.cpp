#include "capture/counters/socket_counters.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/testing/loopback_listener.h"
#include "capture/counters/recording_sink.h"
#include "capture/counters/testing/target_sockets.h"

namespace assay::capture {
namespace {

using model::ProcessId;
using model::SeriesScope;
using os::TcpSocket;
using os::TcpState;
using testing::ElementsAre;

TcpSocket make(TcpState state, uint16_t local, uint16_t remote, uint64_t inode, uint32_t recv_q = 0,
               uint32_t send_q = 0) {
  TcpSocket socket = tcp(state, local, remote, inode);
  socket.cookie = (uint64_t{local} << 32) | remote;
  socket.recv_q = recv_q;
  socket.send_q = send_q;
  return socket;
}

TcpSocket with_info(TcpSocket socket, int64_t rtt_ns, uint64_t retransmits, uint64_t received = 0) {
  socket.info =
      os::TcpInfo{.rtt_ns = rtt_ns, .retransmits = retransmits, .bytes_received = received};
  return socket;
}

// Process 7 of a fake /proc holds sockets 1 to 3; the sockets of its namespace are the test's.
class FakeSockets : public testing::Test {
 protected:
  FakeSockets() {
    add_target(tree, {1, 2, 3});
  }
  void own(uint64_t inode) { hold_socket(tree, kTarget, inode); }
  void poll(std::vector<TcpSocket> next) {
    sockets = std::move(next);
    now += 2 * kNsPerSecond;
    owners.poll(tasks);
    counters.poll(tasks);
  }
  std::vector<int64_t> values(const char* name, const char* label) const {
    return sink.values(SeriesScope::socket, 0, name, label);
  }

  os::FakeTree tree;
  RecordingSink sink;
  std::atomic<uint32_t> next_id{0};
  SeriesBook book{sink, next_id};
  TimeNs now = 0;
  std::vector<TcpSocket> sockets;
  LiveTasks tasks{{{ProcessId{1}, 7}}, {}};
  os::ProcFs proc{tree.root()};
  SocketOwners owners{proc};
  SocketCounters counters{proc, owners, book, [this] { return now; },
                          [this](pid_t) -> Result<std::vector<TcpSocket>> { return sockets; }};
};

TEST_F(FakeSockets, QueuesAreSummedPerPort) {
  poll({make(TcpState::listen, 8000, 0, 1, 3, 128),
        make(TcpState::established, 8000, 40001, 2, 100, 7),
        make(TcpState::established, 8000, 40002, 0, 50, 0),  // waits for accept: no inode yet
        make(TcpState::established, 41000, 6379, 3, 0, 900),
        make(TcpState::established, 40001, 8000, 99, 5, 5),  // a client's end on this machine
        make(TcpState::listen, 22, 0, 98, 1, 1)});
  EXPECT_THAT(values("accept_backlog", "127.0.0.1:8000 listen"), ElementsAre(3));
  EXPECT_THAT(values("accept_backlog_limit", "127.0.0.1:8000 listen"), ElementsAre(128));
  EXPECT_THAT(values("connections", "port 8000 inbound"), ElementsAre(2));
  EXPECT_THAT(values("recv_q", "port 8000 inbound"), ElementsAre(150));
  EXPECT_THAT(values("recv_q_max", "port 8000 inbound"), ElementsAre(100));
  EXPECT_THAT(values("send_q", "to port 6379 outbound"), ElementsAre(900));
  for (const model::Series& series : sink.series()) {
    EXPECT_EQ(series.label.find("22"), std::string::npos) << "not the target's: " << series.label;
    EXPECT_EQ(series.label.find("to port 8000"), std::string::npos) << "not the target's";
  }
  poll({});
  EXPECT_EQ(values("recv_q", "port 8000 inbound").back(), 0) << "gone is zero, not the last value";
}

TEST_F(FakeSockets, CountersGrowByWhatEachConnectionAdded) {
  auto listener = make(TcpState::listen, 8000, 0, 1);
  auto first = make(TcpState::established, 8000, 40001, 2);
  auto second = make(TcpState::established, 8000, 40002, 3);
  poll({listener, with_info(first, 1'000, 5, 10'000)});
  poll({listener, with_info(first, 2'000, 7, 11'000), with_info(second, 4'000, 1, 500)});
  poll({listener, with_info(second, 4'000, 2, 600)});  // the first one closed
  EXPECT_THAT(values("retransmits", "port 8000 inbound"), ElementsAre(0, 3, 4))
      << "history before the window counts for nothing, a closed connection takes nothing away";
  EXPECT_THAT(values("bytes_received", "port 8000 inbound"), ElementsAre(0, 1'500, 1'600));
  EXPECT_THAT(values("rtt", "port 8000 inbound"), ElementsAre(1'000, 3'000, 4'000));
  EXPECT_THAT(values("rtt_max", "port 8000 inbound"), ElementsAre(1'000, 4'000));
}

TEST_F(FakeSockets, ASocketFoundLateBringsNoHistory) {
  auto late = make(TcpState::established, 41000, 6379, 50);
  poll({with_info(late, 1, 100)});
  own(50);
  poll({with_info(late, 1, 101)});
  EXPECT_THAT(values("retransmits", "to port 6379 outbound"), ElementsAre(1));
}

TEST_F(FakeSockets, WorkersWithoutTheListenerAreInboundByTheLowerPort) {
  poll({make(TcpState::established, 443, 50123, 2, 9)});
  EXPECT_THAT(values("recv_q", "port 443 inbound"), ElementsAre(9));
}

TEST_F(FakeSockets, TheNumberOfSeriesIsBounded) {
  std::vector<TcpSocket> many;
  for (uint16_t port = 0; port < 2'000; ++port) {
    own(1'000 + port);
    many.push_back(make(TcpState::established, 50'000, 1'000 + port, 1'000 + port, 1));
  }
  poll(many);
  EXPECT_LT(sink.series().size(), 700u);
  EXPECT_GT(values("connections", "to other ports outbound").at(0), 1'900);
}

TEST_F(FakeSockets, NewProcessesAreReadAtOnceAndTheGoneForgotten) {
  owners.poll(tasks);
  EXPECT_TRUE(owners.owns(1));
  EXPECT_FALSE(owners.owns(0)) << "no inode is nobody's";
  own(60);
  os::add_process(tree, {.pid = 9, .comm = "child"});
  tree.link("9/fd/4", "socket:[70]");
  tasks.processes.push_back({ProcessId{2}, 9});
  owners.note_new(tasks);
  EXPECT_TRUE(owners.owns(70));
  EXPECT_FALSE(owners.owns(60)) << "a known process waits for the next full scan";
  owners.poll(tasks);
  EXPECT_TRUE(owners.owns(60));
  tasks.processes.erase(tasks.processes.begin());
  owners.forget_the_gone(tasks);
  EXPECT_FALSE(owners.owns(1));
  EXPECT_TRUE(owners.owns(70));
}

TEST(SocketCountersReal, TheBacklogOfASleepyServerIsSeen) {
  LoopbackListener server(16);
  UniqueFd client = server.connect();
  ASSERT_TRUE(client.valid());
  ASSERT_EQ(::send(client.get(), "hello", 5, 0), 5);

  os::ProcFs proc;
  RecordingSink sink;
  std::atomic<uint32_t> next_id{0};
  SeriesBook book(sink, next_id);
  SocketOwners owners(proc);
  SocketCounters counters(proc, owners, book, monotonic_ns);
  counters.poll({{{ProcessId{1}, ::getpid()}}, {}});
  std::string port = std::to_string(server.port());
  EXPECT_THAT(
      sink.values(SeriesScope::socket, 0, "accept_backlog", "127.0.0.1:" + port + " listen"),
      ElementsAre(1));
  EXPECT_THAT(sink.values(SeriesScope::socket, 0, "recv_q", "port " + port + " inbound"),
              ElementsAre(5));
  EXPECT_THAT(sink.values(SeriesScope::socket, 0, "connections", "to port " + port + " outbound"),
              ElementsAre(1));
}

}  // namespace
}  // namespace assay::capture
