// The TCP sockets of a network namespace with their queues, as the kernel's sock_diag tells them.
//
// In: a process, whose network namespace is meant; out: one TcpSocket per socket. Threads: one
// TcpDiag is used by one thread at a time; the parsers are pure. Failures: those of sock_diag.h;
// read_net_tcp() is the way out, with queues but without tcp_info and backlog limits. Replies are
// foreign bytes and are bounds-checked. Follows sock_diag(7) and proc(5).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

enum class TcpState : uint8_t {  // the kernel's numbers
  established = 1,
  syn_sent = 2,
  syn_received = 3,
  fin_wait_1 = 4,
  fin_wait_2 = 5,
  time_wait = 6,
  close = 7,
  close_wait = 8,
  last_ack = 9,
  listen = 10,
  closing = 11,
};

struct TcpEndpoint {
  std::array<uint8_t, 16> address{};  // network order; an IPv4 address fills the first four
  bool v6 = false;
  uint16_t port = 0;
  // "127.0.0.1:8000", "[::1]:8000"; an IPv4 address mapped into IPv6 reads as IPv4.
  std::string text() const;
};

struct TcpInfo {
  int64_t rtt_ns = 0;  // smoothed
  uint64_t retransmits = 0;
  uint64_t bytes_acked = 0, bytes_received = 0;
  uint64_t unsent_bytes = 0;                           // in the send queue and not sent even once
  int64_t busy_ns = 0;                                 // with data to send
  int64_t rwnd_limited_ns = 0, sndbuf_limited_ns = 0;  // held back by the peer's window, own buffer
};

struct TcpSocket {
  TcpState state = TcpState::close;
  TcpEndpoint local, remote;
  uint64_t inode = 0;   // 0: no process holds it yet (waiting to be accepted) or any more
  uid_t uid = 0;        // its owner
  uint64_t cookie = 0;  // names the socket as long as the machine runs
  uint32_t recv_q = 0;  // bytes not read by the process; of a listener: connections to be accepted
  uint32_t send_q = 0;  // bytes not acknowledged; of a listener: the limit of recv_q, 0 if unknown
  std::optional<TcpInfo> info;
};

class TcpDiag {
 public:
  // pid 0: this process's own namespace.
  static Result<TcpDiag> open(pid_t pid, const std::string& proc_root = "/proc");
  // Every TCP socket that can have queues (not TIME_WAIT), IPv4 and IPv6.
  Result<std::vector<TcpSocket>> dump();

 private:
  explicit TcpDiag(UniqueFd fd) : fd_(std::move(fd)) {}
  Result<void> dump_family(uint8_t family, std::vector<TcpSocket>& sockets);

  UniqueFd fd_;
  uint32_t sequence_ = 0;
};

// Reads one datagram of netlink messages; true when it held the end of the dump. Messages with
// another sequence number are left out. What is cut off or inconsistent is an Error.
Result<bool> parse_diag_reply(std::span<const uint8_t> bytes, uint32_t sequence,
                              std::vector<TcpSocket>& sockets);

// The same from /proc/PID/net/tcp and tcp6, where netlink is refused. pid 0: this process's own.
Result<std::vector<TcpSocket>> read_net_tcp(pid_t pid, const std::string& proc_root = "/proc");
std::optional<TcpSocket> parse_net_tcp_line(std::string_view line);

// The network namespace of a process, "net:[4026531840]"; "" when it cannot be read.
std::string network_namespace(pid_t pid, const std::string& proc_root = "/proc");

}  // namespace assay::os
