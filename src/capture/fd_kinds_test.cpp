#include "capture/fd_kinds.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/loopback_listener.h"
#include "base/unique_fd.h"

namespace assay::capture {
namespace {

using model::FdKind;

TEST(FdKinds, LinksSayWhatTheyAre) {
  EXPECT_EQ(kind_of_link("pipe:[123]"), FdKind::pipe);
  EXPECT_EQ(kind_of_link("anon_inode:[eventpoll]"), FdKind::epoll);
  EXPECT_EQ(kind_of_link("anon_inode:[io_uring]"), FdKind::io_uring);
  EXPECT_EQ(kind_of_link("/dev/null"), FdKind::device);
  EXPECT_EQ(kind_of_link("/var/log/x"), FdKind::file);
  EXPECT_EQ(kind_of_link("mystery"), FdKind::other);
}

TEST(FdKinds, KnowsOurOwnDescriptors) {
  os::ProcFs proc;
  FdKinds kinds(proc);
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd event(eventfd(0, EFD_CLOEXEC));
  UniqueFd udp(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(udp.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback), 0);
  ASSERT_EQ(listen(tcp.get(), 1), 0);
  TimeNs now = monotonic_ns();
  EXPECT_EQ(kinds.kind_of(getpid(), epoll.get(), now), FdKind::epoll);
  EXPECT_EQ(kinds.kind_of(getpid(), event.get(), now), FdKind::eventfd);
  EXPECT_EQ(kinds.kind_of(getpid(), udp.get(), now), FdKind::socket_datagram);
  EXPECT_EQ(kinds.kind_of(getpid(), tcp.get(), now), FdKind::socket_listen);
  EXPECT_EQ(kinds.kind_of(getpid(), 9999, now), FdKind::none);
  EXPECT_EQ(kinds.kind_of(getpid(), -1, now), FdKind::none);
}

TEST(FdKinds, KnowsWhoseConnectionItIs) {
  os::ProcFs proc;
  FdKinds kinds(proc);
  LoopbackListener listener;
  UniqueFd out = listener.connect();
  ASSERT_TRUE(out.valid());
  UniqueFd in(accept(listener.fd(), nullptr, nullptr));
  ASSERT_TRUE(in.valid());
  TimeNs now = monotonic_ns();
  EXPECT_EQ(kinds.kind_of(getpid(), in.get(), now), FdKind::socket_accepted);
  EXPECT_EQ(kinds.kind_of(getpid(), out.get(), now), FdKind::socket_connected);
}

TEST(FdKinds, AReusedNumberIsNoticedAfterASecond) {
  os::ProcFs proc;
  FdKinds kinds(proc);
  UniqueFd first(eventfd(0, EFD_CLOEXEC));
  int number = first.get();
  TimeNs now = monotonic_ns();
  EXPECT_EQ(kinds.kind_of(getpid(), number, now), FdKind::eventfd);
  first.reset();
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  ASSERT_EQ(epoll.get(), number) << "the lowest free number is reused";
  EXPECT_EQ(kinds.kind_of(getpid(), number, now + 2 * kNsPerSecond), FdKind::epoll);
}

}  // namespace
}  // namespace assay::capture
