// SocketPeers: the other ends of the target's connections, as far as they are on this host.
//
// In: the sockets of the target's network namespaces and of Assay's own, and which of them are the
// target's; out: for a socket inode, what its holder has to do with the target. TCP ends are paired
// by swapped addresses, so a peer behind address translation is not found; unix sockets by what the
// kernel says. A peer on another host is not there at all. direction_of() tells who opened a TCP
// connection. Threads: one. Failures: sockets that cannot be listed have no peers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/counters/socket_owners.h"
#include "model/other_user.h"
#include "os/machine/inet_diag.h"
#include "os/machine/unix_diag.h"

namespace assay::capture {

enum class Direction : uint8_t { inbound, outbound };

// Of a connection of the target; absent: it is not the target's. It is inbound when its local port
// is one that the target listens on, or, where no listener is known, when the local port is the
// lower of the two (below the ephemeral range).
std::optional<Direction> direction_of(const os::TcpSocket& socket, const SocketOwners& owners,
                                      const std::set<uint16_t>& listen_ports);
// The ports that the target listens on.
std::set<uint16_t> listen_ports(const std::vector<os::TcpSocket>& sockets,
                                const SocketOwners& owners);

class SocketPeers {
 public:
  // All namespaces' target sockets first, then all sockets again to find the other ends.
  void add_target_sockets(const std::vector<os::TcpSocket>& sockets, const SocketOwners& owners);
  void add_other_ends(const std::vector<os::TcpSocket>& sockets, const SocketOwners& owners);
  void add_unix(const std::vector<os::UnixSocket>& sockets, const SocketOwners& owners);

  // load_generator, connected or nothing.
  std::optional<model::Relation> relation_of(uint64_t inode) const;

 private:
  void add(uint64_t inode, model::Relation relation);
  std::unordered_map<std::string, Direction> wanted_;        // by the other end's addresses
  std::unordered_map<uint64_t, model::Relation> relations_;  // by inode
};

}  // namespace assay::capture
