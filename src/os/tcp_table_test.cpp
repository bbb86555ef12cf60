#include "os/tcp_table.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "os/procfs.h"

namespace assay::os {
namespace {

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 "
    "0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 1\n"
    "   2: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 4713 1\n";

TEST(TcpTable, ListsListenersOnly) {
  auto sockets = parse_tcp_table(kTable);
  ASSERT_EQ(sockets.size(), 2u);
  EXPECT_EQ(sockets[0].port, 8080);
  EXPECT_EQ(sockets[0].inode, 4711u);
  EXPECT_EQ(sockets[0].uid, 1000u);
  EXPECT_EQ(sockets[1].port, 80);
}

TEST(TcpTable, LeavesOutDamagedRows) {
  for (const char* bad : {"", "\n\n", "0: 1:2 3 0A", "0: 1F90 0:0 0A a b c 0 0 5",
                          "0: 1:FFFFF 0 0A a b c 0 0 5", "0: 1:50 0 0A a b c 0 0 x"}) {
    EXPECT_TRUE(parse_tcp_table(bad).empty()) << bad;
  }
}

TEST(TcpTable, ReadsSocketLinks) {
  EXPECT_EQ(socket_inode("socket:[123]"), 123u);
  for (const char* bad : {"", "socket:[]", "socket:[12", "pipe:[12]", "socket:[1x]", "socket:["}) {
    EXPECT_FALSE(socket_inode(bad)) << bad;
  }
}

TEST(TcpTable, FindsARealListener) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);

  ProcFs proc;
  uint64_t inode = *socket_inode(*proc.fd_link(::getpid(), listener.get()));
  EXPECT_NE(inode, 0u);
  auto is_ours = [&](const ListeningSocket& socket) {
    return socket.port == ntohs(address.sin_port) && socket.inode == inode &&
           socket.uid == ::geteuid();
  };
  EXPECT_THAT(listening_sockets(proc, "net"), testing::Contains(testing::Truly(is_ours)));
}

}  // namespace
}  // namespace assay::os
