#include "capture/counters/socket_peers.h"

#include <gtest/gtest.h>

#include "capture/counters/testing/target_sockets.h"

namespace assay::capture {
namespace {

using model::ProcessId;
using model::Relation;
using os::TcpSocket;
using os::TcpState;

TcpSocket mapped(TcpSocket socket) {  // the same addresses, as a socket of both families has them
  for (os::TcpEndpoint* end : {&socket.local, &socket.remote}) {
    end->v6 = true;
    end->address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  }
  return socket;
}

// The target is process 7 and holds the sockets 1 to 9.
class Peers : public testing::Test {
 protected:
  Peers() {
    add_target(tree, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    owners.poll({{{ProcessId{1}, kTarget}}, {}});
  }
  void add(const std::vector<TcpSocket>& sockets) {
    peers.add_target_sockets(sockets, owners);
    peers.add_other_ends(sockets, owners);
  }
  os::FakeTree tree;
  os::ProcFs proc{tree.root()};
  SocketOwners owners{proc};
  SocketPeers peers;
};

TEST_F(Peers, WhoConnectedToTheTargetIsItsLoadGenerator) {
  add({tcp(TcpState::listen, 8000, 0, 1), tcp(TcpState::established, 8000, 40'001, 2),
       tcp(TcpState::established, 40'001, 8000, 50),    // the client's end
       tcp(TcpState::established, 40'002, 8000, 51),    // its connection is not the target's
       tcp(TcpState::established, 40'001, 9000, 52)});  // the same port, to somebody else
  EXPECT_EQ(peers.relation_of(50), Relation::load_generator);
  EXPECT_FALSE(peers.relation_of(51));
  EXPECT_FALSE(peers.relation_of(52));
  EXPECT_FALSE(peers.relation_of(2)) << "the target's own end";
}

TEST_F(Peers, WhomTheTargetConnectedToIsConnected) {
  add({tcp(TcpState::established, 41'000, 6379, 3), tcp(TcpState::established, 6379, 41'000, 60)});
  EXPECT_EQ(peers.relation_of(60), Relation::connected);
}

TEST_F(Peers, AConnectionThatWaitsToBeAcceptedCounts) {
  add({tcp(TcpState::listen, 8000, 0, 1), tcp(TcpState::established, 8000, 40'001, 0),
       tcp(TcpState::established, 40'001, 8000, 50)});
  EXPECT_EQ(peers.relation_of(50), Relation::load_generator);
}

TEST_F(Peers, AddressesOfBothFamiliesMeet) {
  add({tcp(TcpState::listen, 8000, 0, 1), mapped(tcp(TcpState::established, 8000, 40'001, 2)),
       tcp(TcpState::established, 40'001, 8000, 50)});
  EXPECT_EQ(peers.relation_of(50), Relation::load_generator);
}

TEST_F(Peers, TheEndThatAcceptMadeHasAName) {
  peers.add_unix({{2, 70, true},  // the target accepted
                  {70, 2, false},
                  {3, 71, false},  // the target connected
                  {71, 3, true},
                  {4, 72, false},  // a socket pair
                  {72, 4, false},
                  {5, 6, false},  // both ends are the target's
                  {6, 5, false},
                  {80, 81, true}},
                 owners);
  EXPECT_EQ(peers.relation_of(70), Relation::load_generator);
  EXPECT_EQ(peers.relation_of(71), Relation::connected);
  EXPECT_EQ(peers.relation_of(72), Relation::connected);
  EXPECT_FALSE(peers.relation_of(6));
  EXPECT_FALSE(peers.relation_of(81));
}

}  // namespace
}  // namespace assay::capture
