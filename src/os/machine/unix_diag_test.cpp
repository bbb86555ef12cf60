#include "os/machine/unix_diag.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/unique_fd.h"

namespace assay::os {
namespace {

uint64_t inode_of(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 ? about.st_ino : 0;
}

TEST(UnixDiag, TheTwoEndsOfAPairKnowEachOther) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd one(ends[0]), other(ends[1]);
  auto sockets = read_unix_sockets(0);
  if (!sockets) GTEST_SKIP() << "skipped: " << sockets.error().text();
  auto found = std::ranges::find(*sockets, inode_of(one.get()), &UnixSocket::inode);
  ASSERT_NE(found, sockets->end());
  EXPECT_EQ(found->peer, inode_of(other.get()));
  EXPECT_FALSE(found->named);
}

TEST(UnixDiag, CutMessagesAreErrors) {
  std::vector<uint8_t> bytes(sizeof(unix_diag_msg) - 1);
  EXPECT_FALSE(parse_unix_message(bytes));
  bytes.resize(sizeof(unix_diag_msg) + sizeof(nlattr));
  nlattr attribute{.nla_len = 200, .nla_type = UNIX_DIAG_PEER};
  std::memcpy(bytes.data() + sizeof(unix_diag_msg), &attribute, sizeof attribute);
  EXPECT_FALSE(parse_unix_message(bytes)) << "an attribute that is longer than the message";
  attribute.nla_len = sizeof attribute;
  std::memcpy(bytes.data() + sizeof(unix_diag_msg), &attribute, sizeof attribute);
  auto socket = parse_unix_message(bytes);
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->peer, 0u) << "a peer without a number is none";
}

}  // namespace
}  // namespace assay::os
