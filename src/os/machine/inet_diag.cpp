#include "os/machine/inet_diag.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/machine/sock_diag.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr size_t kMaxSockets = 1 << 20;

constexpr uint32_t state_bit(TcpState state) {
  return 1u << static_cast<unsigned>(state);
}
// TIME_WAIT sockets have no queue and no owner, and a busy server has tens of thousands.
constexpr uint32_t kWantedStates = state_bit(TcpState::established) |
                                   state_bit(TcpState::syn_sent) | state_bit(TcpState::fin_wait_1) |
                                   state_bit(TcpState::fin_wait_2) |
                                   state_bit(TcpState::close_wait) | state_bit(TcpState::last_ack) |
                                   state_bit(TcpState::listen) | state_bit(TcpState::closing);

int64_t us_to_ns(uint64_t us) {
  int64_t ns = 0;
  if (__builtin_mul_overflow(us, kNsPerUs, &ns)) return INT64_MAX;
  return ns;
}

// tcp_info has grown over the years: an older kernel's is shorter, a newer one's longer.
TcpInfo tcp_info_of(std::span<const uint8_t> bytes) {
  auto raw = read_as<struct tcp_info>(bytes);
  TcpInfo info;
  info.rtt_ns = us_to_ns(raw.tcpi_rtt);
  info.retransmits = raw.tcpi_total_retrans;
  info.bytes_acked = raw.tcpi_bytes_acked;
  info.bytes_received = raw.tcpi_bytes_received;
  info.unsent_bytes = raw.tcpi_notsent_bytes;
  info.busy_ns = us_to_ns(raw.tcpi_busy_time);
  info.rwnd_limited_ns = us_to_ns(raw.tcpi_rwnd_limited);
  info.sndbuf_limited_ns = us_to_ns(raw.tcpi_sndbuf_limited);
  return info;
}

TcpEndpoint endpoint_of(uint8_t family, const __be32 (&address)[4], __be16 port) {
  TcpEndpoint endpoint;
  endpoint.v6 = family == AF_INET6;
  std::memcpy(endpoint.address.data(), address, endpoint.v6 ? 16 : 4);
  endpoint.port = ntohs(port);
  return endpoint;
}

Result<TcpSocket> parse_diag_message(std::span<const uint8_t> payload) {
  if (payload.size() < sizeof(inet_diag_msg)) return fail("a sock_diag message is cut off");
  auto message = read_as<inet_diag_msg>(payload);
  TcpSocket socket;
  socket.state = static_cast<TcpState>(message.idiag_state);
  socket.local = endpoint_of(message.idiag_family, message.id.idiag_src, message.id.idiag_sport);
  socket.remote = endpoint_of(message.idiag_family, message.id.idiag_dst, message.id.idiag_dport);
  socket.inode = message.idiag_inode;
  socket.uid = message.idiag_uid;
  socket.cookie = message.id.idiag_cookie[0] | uint64_t{message.id.idiag_cookie[1]} << 32;
  socket.recv_q = message.idiag_rqueue;
  socket.send_q = message.idiag_wqueue;

  auto rest = payload.subspan(std::min(align4(sizeof message), payload.size()));
  auto visited = visit_attributes(rest, [&](uint16_t type, std::span<const uint8_t> value) {
    if (type == INET_DIAG_INFO) socket.info = tcp_info_of(value);
  });
  if (!visited) return std::unexpected(visited.error());
  return socket;
}

Result<void> keep(std::span<const uint8_t> payload, std::vector<TcpSocket>& sockets) {
  auto socket = parse_diag_message(payload);
  if (!socket) return std::unexpected(socket.error());
  if (sockets.size() >= kMaxSockets) return fail("more TCP sockets than can be listed");
  sockets.push_back(*socket);
  return {};
}

std::optional<TcpEndpoint> parse_net_tcp_endpoint(std::string_view text) {
  size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return {};
  TcpEndpoint endpoint;
  endpoint.v6 = colon == 32;
  for (size_t word = 0; word * 8 < colon; ++word) {
    auto value = parse_hex(text.substr(word * 8, 8));
    if (!value) return {};
    auto native = static_cast<uint32_t>(*value);  // printed as the CPU reads the network's bytes
    std::memcpy(endpoint.address.data() + word * 4, &native, 4);
  }
  auto port = parse_hex(text.substr(colon + 1));
  if (!port || *port > UINT16_MAX) return {};
  endpoint.port = static_cast<uint16_t>(*port);
  return endpoint;
}

}  // namespace

std::string TcpEndpoint::text() const {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  char buffer[INET6_ADDRSTRLEN] = "?";
  bool mapped = v6 && std::equal(kMapped.begin(), kMapped.end(), address.begin());
  if (v6 && !mapped) {
    ::inet_ntop(AF_INET6, address.data(), buffer, sizeof buffer);
    return fmt::format("[{}]:{}", buffer, port);
  }
  ::inet_ntop(AF_INET, address.data() + (mapped ? 12 : 0), buffer, sizeof buffer);
  return fmt::format("{}:{}", buffer, port);
}

Result<bool> parse_diag_reply(std::span<const uint8_t> bytes, uint32_t sequence,
                              std::vector<TcpSocket>& sockets) {
  return visit_diag_messages(
      bytes, sequence,
      [&](std::span<const uint8_t> payload) -> Result<void> { return keep(payload, sockets); });
}

Result<TcpDiag> TcpDiag::open(pid_t pid, const std::string& proc_root) {
  auto fd = open_sock_diag(pid, proc_root);
  if (!fd) return std::unexpected(fd.error());
  return TcpDiag(std::move(*fd));
}

Result<std::vector<TcpSocket>> TcpDiag::dump() {
  std::vector<TcpSocket> sockets;
  for (uint8_t family : {AF_INET, AF_INET6}) {
    auto dumped = dump_family(family, sockets);
    if (dumped) continue;
    // A kernel without IPv6 still has all its IPv4 sockets.
    if (family == AF_INET6 && dumped.error().code == ENOENT) continue;
    return std::unexpected(dumped.error());
  }
  return sockets;
}

Result<void> TcpDiag::dump_family(uint8_t family, std::vector<TcpSocket>& sockets) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.header.nlmsg_seq = ++sequence_;
  ask.request.sdiag_family = family;
  ask.request.sdiag_protocol = IPPROTO_TCP;
  ask.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  ask.request.idiag_states = kWantedStates;
  return dump_sock_diag(fd_.get(), std::span(reinterpret_cast<const uint8_t*>(&ask), sizeof ask),
                        sequence_,
                        [&](std::span<const uint8_t> payload) { return keep(payload, sockets); });
}

// "0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000 0 0 1234 …":
// slot, local, remote, state, send:receive queue, timer, retransmits, uid, timeout, inode
std::optional<TcpSocket> parse_net_tcp_line(std::string_view line) {
  auto words = split_words(line);
  if (words.size() < 10 || !words[0].ends_with(':')) return {};
  auto local = parse_net_tcp_endpoint(words[1]);
  auto remote = parse_net_tcp_endpoint(words[2]);
  auto state = parse_hex(words[3]);
  auto queues = split(words[4], ':');
  auto inode = parse_u64(words[9]);
  auto uid = parse_u64(words[7]);
  if (!local || !remote || !state || *state > 0xff || queues.size() != 2) return {};
  if (!inode || !uid || *uid > UINT32_MAX) return {};
  auto send_q = parse_hex(queues[0]), recv_q = parse_hex(queues[1]);
  if (!send_q || !recv_q) return {};
  TcpSocket socket;
  socket.state = static_cast<TcpState>(*state);
  socket.local = *local;
  socket.remote = *remote;
  socket.inode = socket.cookie = *inode;
  socket.uid = static_cast<uid_t>(*uid);
  socket.recv_q = static_cast<uint32_t>(*recv_q);
  socket.send_q = static_cast<uint32_t>(*send_q);
  return socket;
}

Result<std::vector<TcpSocket>> read_net_tcp(pid_t pid, const std::string& proc_root) {
  constexpr size_t kLimitBytes = size_t{64} << 20;
  std::vector<TcpSocket> sockets;
  std::string who = pid == 0 ? "self" : std::to_string(pid);
  bool any = false;
  for (const char* file : {"tcp", "tcp6"}) {
    auto text = read_text_file(fmt::format("{}/{}/net/{}", proc_root, who, file), kLimitBytes);
    if (!text) continue;
    any = true;
    for (std::string_view line : split(*text, '\n')) {
      auto socket = parse_net_tcp_line(line);
      if (socket && socket->state != TcpState::time_wait) sockets.push_back(*socket);
    }
  }
  if (!any) return fail_errno("cannot read {}/{}/net/tcp", proc_root, who);
  return sockets;
}

std::string network_namespace(pid_t pid, const std::string& proc_root) {
  std::string who = pid == 0 ? "self" : std::to_string(pid);
  char link[128];
  ssize_t size = ::readlink(fmt::format("{}/{}/ns/net", proc_root, who).c_str(), link, sizeof link);
  return size < 0 ? "" : std::string(link, static_cast<size_t>(size));
}

}  // namespace assay::os
