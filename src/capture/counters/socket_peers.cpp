#include "capture/counters/socket_peers.h"

#include <algorithm>

namespace assay::capture {
namespace {

using model::Relation;

constexpr uint16_t kFirstEphemeralPort = 32'768;  // the kernel's default ip_local_port_range

// "from>to"; an IPv4 address reads the same when it is mapped into IPv6.
std::string pair_of(const os::TcpEndpoint& from, const os::TcpEndpoint& to) {
  return from.text() + ">" + to.text();
}

bool is_connection(const os::TcpSocket& socket) {
  return socket.state != os::TcpState::listen && socket.state != os::TcpState::time_wait;
}

}  // namespace

std::optional<Direction> direction_of(const os::TcpSocket& socket, const SocketOwners& owners,
                                      const std::set<uint16_t>& listen_ports) {
  // Connections that wait for accept() have no inode yet, but they have the listener's port.
  if (listen_ports.contains(socket.local.port)) return Direction::inbound;
  if (!owners.owns(socket.inode)) return {};
  bool served_port = socket.local.port < kFirstEphemeralPort;
  bool inbound = served_port && socket.remote.port >= kFirstEphemeralPort;
  return inbound ? Direction::inbound : Direction::outbound;
}

std::set<uint16_t> listen_ports(const std::vector<os::TcpSocket>& sockets,
                                const SocketOwners& owners) {
  std::set<uint16_t> ports;
  for (const os::TcpSocket& socket : sockets) {
    bool ours = socket.state == os::TcpState::listen && owners.owns(socket.inode);
    if (ours) ports.insert(socket.local.port);
  }
  return ports;
}

void SocketPeers::add_target_sockets(const std::vector<os::TcpSocket>& sockets,
                                     const SocketOwners& owners) {
  std::set<uint16_t> ports = listen_ports(sockets, owners);
  for (const os::TcpSocket& socket : sockets) {
    if (!is_connection(socket)) continue;
    auto direction = direction_of(socket, owners, ports);
    if (direction) wanted_.emplace(pair_of(socket.remote, socket.local), *direction);
  }
}

void SocketPeers::add_other_ends(const std::vector<os::TcpSocket>& sockets,
                                 const SocketOwners& owners) {
  if (wanted_.empty()) return;
  for (const os::TcpSocket& socket : sockets) {
    if (!is_connection(socket) || socket.inode == 0 || owners.owns(socket.inode)) continue;
    auto found = wanted_.find(pair_of(socket.local, socket.remote));
    if (found == wanted_.end()) continue;
    bool inbound = found->second == Direction::inbound;
    add(socket.inode, inbound ? Relation::load_generator : Relation::connected);
  }
}

void SocketPeers::add_unix(const std::vector<os::UnixSocket>& sockets, const SocketOwners& owners) {
  std::unordered_map<uint64_t, bool> named;
  for (const os::UnixSocket& socket : sockets) named.emplace(socket.inode, socket.named);
  for (const os::UnixSocket& socket : sockets) {
    if (!owners.owns(socket.inode) || owners.owns(socket.peer)) continue;
    // Of the two ends, accept() made the one with a name. Where the peer has one as well, who
    // accepted cannot be told.
    auto peer = named.find(socket.peer);
    bool accepted = socket.named && peer != named.end() && !peer->second;
    add(socket.peer, accepted ? Relation::load_generator : Relation::connected);
  }
}

void SocketPeers::add(uint64_t inode, Relation relation) {
  auto [entry, is_new] = relations_.emplace(inode, relation);
  if (!is_new) entry->second = std::min(entry->second, relation);
}

std::optional<Relation> SocketPeers::relation_of(uint64_t inode) const {
  auto found = relations_.find(inode);
  if (found == relations_.end()) return {};
  return found->second;
}

}  // namespace assay::capture
