#include "os/machine/inet_diag.h"

#include <csignal>
#include <cstring>
#include <random>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/testing/loopback_listener.h"
#include "os/fake_tree.h"
#include "os/process/procfs.h"

namespace assay::os {
namespace {

void append(std::vector<uint8_t>& bytes, const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  bytes.insert(bytes.end(), from, from + size);
  while (bytes.size() % 4 != 0) bytes.push_back(0);
}

// A reply as the kernel makes it: one established IPv4 socket with tcp_info, then the end.
std::vector<uint8_t> reply_bytes(uint32_t sequence, size_t info_bytes = sizeof(struct tcp_info)) {
  inet_diag_msg message{};
  message.idiag_family = AF_INET;
  message.idiag_state = 1;
  message.id.idiag_sport = htons(8000);
  message.id.idiag_dport = htons(40'000);
  message.id.idiag_src[0] = htonl(0x7f000001);
  message.id.idiag_dst[0] = htonl(0x0a000002);
  message.id.idiag_cookie[0] = 5;
  message.id.idiag_cookie[1] = 1;
  message.idiag_rqueue = 100;
  message.idiag_wqueue = 200;
  message.idiag_inode = 4242;
  struct tcp_info info {};
  info.tcpi_rtt = 1500;
  info.tcpi_total_retrans = 3;
  info.tcpi_sndbuf_limited = 7;
  std::vector<uint8_t> payload;
  append(payload, &message, sizeof message);
  nlattr other{.nla_len = sizeof(nlattr) + 1, .nla_type = INET_DIAG_SHUTDOWN};
  append(payload, &other, sizeof other);
  append(payload, "\0", 1);
  nlattr attribute{.nla_len = static_cast<uint16_t>(sizeof(nlattr) + info_bytes),
                   .nla_type = INET_DIAG_INFO};
  append(payload, &attribute, sizeof attribute);
  append(payload, &info, info_bytes);
  nlmsghdr header{};
  header.nlmsg_len = static_cast<uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_seq = sequence;
  std::vector<uint8_t> bytes;
  append(bytes, &header, sizeof header);
  append(bytes, payload.data(), payload.size());
  nlmsghdr done{};
  done.nlmsg_len = sizeof done + 4;
  done.nlmsg_type = NLMSG_DONE;
  done.nlmsg_seq = sequence;
  append(bytes, &done, sizeof done);
  append(bytes, "\0\0\0\0", 4);
  return bytes;
}

TEST(InetDiag, ReadsAReply) {
  std::vector<TcpSocket> sockets;
  auto done = parse_diag_reply(reply_bytes(9), 9, sockets);
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(*done);
  ASSERT_EQ(sockets.size(), 1u);
  const TcpSocket& socket = sockets[0];
  EXPECT_EQ(socket.state, TcpState::established);
  EXPECT_EQ(socket.local.text(), "127.0.0.1:8000");
  EXPECT_EQ(socket.remote.text(), "10.0.0.2:40000");
  EXPECT_EQ(socket.inode, 4242u);
  EXPECT_EQ(socket.cookie, 0x100000005u);
  EXPECT_EQ(socket.recv_q, 100u);
  EXPECT_EQ(socket.send_q, 200u);
  ASSERT_TRUE(socket.info);
  EXPECT_EQ(socket.info->rtt_ns, 1'500'000);
  EXPECT_EQ(socket.info->retransmits, 3u);
  EXPECT_EQ(socket.info->sndbuf_limited_ns, 7'000);
}

TEST(InetDiag, AnOlderKernelsShorterTcpInfoIsReadAsFarAsItGoes) {
  std::vector<TcpSocket> sockets;
  ASSERT_TRUE(parse_diag_reply(reply_bytes(9, 104), 9, sockets));
  ASSERT_TRUE(sockets.at(0).info);
  EXPECT_EQ(sockets[0].info->retransmits, 3u);
  EXPECT_EQ(sockets[0].info->sndbuf_limited_ns, 0);
}

TEST(InetDiag, AnotherAsksReplyIsLeftOut) {
  std::vector<TcpSocket> sockets;
  auto done = parse_diag_reply(reply_bytes(8), 9, sockets);
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_TRUE(sockets.empty());
}

TEST(InetDiag, ARefusalCarriesItsErrno) {
  nlmsghdr header{};
  int32_t code = -EPERM;
  header.nlmsg_len = sizeof header + sizeof code;
  header.nlmsg_type = NLMSG_ERROR;
  header.nlmsg_seq = 1;
  std::vector<uint8_t> bytes;
  append(bytes, &header, sizeof header);
  append(bytes, &code, sizeof code);
  std::vector<TcpSocket> sockets;
  auto done = parse_diag_reply(bytes, 1, sockets);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EPERM);
}

TEST(InetDiag, EveryCutOfAReplyIsSurvived) {
  std::vector<uint8_t> whole = reply_bytes(9);
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ssize_t>(size));
    std::vector<TcpSocket> sockets;
    auto done = parse_diag_reply(cut, 9, sockets);
    EXPECT_FALSE(done && *done) << "the end of the dump is not in the first " << size << " bytes";
  }
}

// Heap buffers of the exact size, so that the sanitizer build sees a read of one byte too many.
TEST(InetDiag, MutatedRepliesNeverReadOutside) {
  std::mt19937_64 random(20'240'607);
  const std::vector<uint8_t> whole = reply_bytes(9);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> bytes = whole;
    for (uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    bytes.resize(1 + random() % bytes.size());
    bytes.shrink_to_fit();
    std::vector<TcpSocket> sockets;
    (void)parse_diag_reply(bytes, 9, sockets);
    for (const TcpSocket& socket : sockets) EXPECT_FALSE(socket.local.text().empty());
    ASSERT_LE(sockets.size(), bytes.size() / sizeof(inet_diag_msg));
  }
}

TEST(InetDiag, ReadsNetTcpText) {
  auto socket = parse_net_tcp_line(
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 "
      "1234 1 ffff 100 0 0 10 0");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->state, TcpState::listen);
  EXPECT_EQ(socket->local.text(), "127.0.0.1:8080");
  EXPECT_EQ(socket->recv_q, 3u);
  EXPECT_EQ(socket->inode, 1234u);
  auto six = parse_net_tcp_line(
      "0: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 01 "
      "00000010:00000000 00:00000000 00000000 0 0 9");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->local.text(), "[::1]:22");
  EXPECT_EQ(six->send_q, 16u);
  for (const char* bad :
       {"", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid",
        "0: 0100007F:1F90 0000:0000 0A 0:0 0 0 0 0 1",
        "0: 0100007F:FFFFF 00000000:0 0A 0:0 0 0 0 0 1",
        "0: 0100007F:1F90 00000000:0000 0A 00 0 0 0 0 1"}) {
    EXPECT_FALSE(parse_net_tcp_line(bad)) << bad;
  }
}

TEST(InetDiag, NetTcpFilesAreReadTogether) {
  FakeTree tree;
  tree.write("7/net/tcp",
             "header\n 0: 0100007F:1F90 00000000:0000 0A 0:2 00:0 0 0 0 11 1\n"
             " 1: 0100007F:1F90 0100007F:AAAA 06 0:0 00:0 0 0 0 0 1\n");
  auto sockets = read_net_tcp(7, tree.root());
  ASSERT_TRUE(sockets);
  ASSERT_EQ(sockets->size(), 1u) << "TIME_WAIT is left out";
  EXPECT_FALSE(read_net_tcp(8, tree.root()));
}

TEST(InetDiag, MappedAddressesReadAsIpv4AndFdLinksAsInodes) {
  TcpEndpoint endpoint;
  endpoint.v6 = true;
  endpoint.port = 80;
  endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
  EXPECT_EQ(endpoint.text(), "10.1.2.3:80");
  EXPECT_EQ(socket_inode("socket:[77]"), 77u);
  EXPECT_FALSE(socket_inode("pipe:[77]"));
  EXPECT_FALSE(socket_inode("socket:["));
  EXPECT_FALSE(socket_inode("/tmp/socket:[1]"));
}

const TcpSocket* find_listener(const std::vector<TcpSocket>& sockets, uint16_t port) {
  for (const TcpSocket& socket : sockets) {
    if (socket.state == TcpState::listen && socket.local.port == port) return &socket;
  }
  return nullptr;
}

TEST(InetDiagReal, SeesTheBacklogAndTheQueueOfASleepyServer) {
  auto diag = TcpDiag::open(0);
  if (!diag) GTEST_SKIP() << "skipped: " << diag.error().what;
  LoopbackListener server(7);
  UniqueFd first = server.connect(), second = server.connect();
  UniqueFd third = server.connect();
  ASSERT_TRUE(first.valid() && second.valid() && third.valid());
  ASSERT_EQ(::send(first.get(), "hello", 5, 0), 5);

  auto sockets = diag->dump();
  ASSERT_TRUE(sockets) << sockets.error().what;
  const TcpSocket* listener = find_listener(*sockets, server.port());
  ASSERT_NE(listener, nullptr);
  EXPECT_EQ(listener->recv_q, 3u);
  EXPECT_EQ(listener->send_q, 7u);
  EXPECT_NE(listener->inode, 0u);
  uint32_t unread = 0;
  int waiting = 0;
  for (const TcpSocket& socket : *sockets) {
    if (socket.local.port != server.port() || socket.state != TcpState::established) continue;
    ++waiting;
    unread += socket.recv_q;
    EXPECT_TRUE(socket.info);
  }
  EXPECT_EQ(waiting, 3);
  EXPECT_EQ(unread, 5u) << "bytes sent before accept wait in the server's queue";

  auto text = read_net_tcp(::getpid());
  ASSERT_TRUE(text);
  const TcpSocket* from_text = find_listener(*text, server.port());
  ASSERT_NE(from_text, nullptr) << "the fallback sees the same listener";
  EXPECT_EQ(from_text->recv_q, 3u);
  EXPECT_EQ(from_text->inode, listener->inode);
}

TEST(InetDiagReal, LooksIntoAnotherNetworkNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: a network namespace of its own needs root";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    uint16_t port = 0;
    if (::unshare(CLONE_NEWNET) != 0) {
      (void)!::write(ready[1], &port, sizeof port);
      ::_exit(1);
    }
    LoopbackListener server(3);
    port = server.port();
    (void)!::write(ready[1], &port, sizeof port);
    ::alarm(20);  // should the test die
    ::pause();
    ::_exit(0);
  }
  uint16_t port = 0;
  ASSERT_EQ(::read(ready[0], &port, sizeof port), ssize_t(sizeof port));
  if (port != 0) {
    std::string own = network_namespace(0);
    EXPECT_NE(network_namespace(child), own);
    auto diag = TcpDiag::open(child);
    EXPECT_TRUE(diag) << diag.error().what;
    if (diag) {
      auto sockets = diag->dump();
      EXPECT_TRUE(sockets);
      EXPECT_EQ(sockets->size(), 1u) << "nothing of our own namespace";
      EXPECT_NE(find_listener(*sockets, port), nullptr);
    }
    EXPECT_EQ(network_namespace(0), own) << "this thread stayed where it was";
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  if (port == 0) GTEST_SKIP() << "skipped: unshare(CLONE_NEWNET) is refused here";
}

}  // namespace
}  // namespace assay::os
