// Sockets of a target in a fake /proc. For tests only.
#pragma once

#include <vector>

#include "os/fake_tree.h"
#include "os/machine/inet_diag.h"

namespace assay::capture {

inline constexpr pid_t kTarget = 7;

// Both ends on 127.0.0.1.
inline os::TcpSocket tcp(os::TcpState state, uint16_t local, uint16_t remote, uint64_t inode) {
  os::TcpSocket socket;
  socket.state = state;
  socket.local.address = socket.remote.address = {127, 0, 0, 1};
  socket.local.port = local;
  socket.remote.port = remote;
  socket.inode = inode;
  return socket;
}

// The process `pid` has the socket `inode` open.
inline void hold_socket(os::FakeTree& tree, pid_t pid, uint64_t inode) {
  tree.link(fmt::format("{}/fd/{}", pid, inode + 10), fmt::format("socket:[{}]", inode));
}

// The target, with these sockets.
inline void add_target(os::FakeTree& tree, const std::vector<uint64_t>& inodes) {
  os::add_process(tree, {.pid = kTarget, .comm = "srv"});
  for (uint64_t inode : inodes) hold_socket(tree, kTarget, inode);
}

}  // namespace assay::capture
