// SocketCounters: how full the target's TCP queues are, summed so that the number of series is
// bounded.
//
// In: live processes; out: points of scope socket. Listeners are grouped by address, inbound
// connections by local port, outbound connections by remote port; direction_of() tells which is
// which. Beyond kMaxPorts all others are one group. Sums over connections of counters (retransmits,
// bytes, time limited) grow by the increase of each connection since the last poll, so they do not
// fall when a connection closes. Threads: one.
// Failures: without sock_diag, /proc/PID/net/tcp; without either, a note and no points.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/counters/counter_group.h"
#include "capture/counters/socket_owners.h"
#include "capture/counters/socket_peers.h"
#include "os/machine/inet_diag.h"
#include "os/process/procfs.h"

namespace assay::capture {

// The sockets of one network namespace; a test hands in its own.
using SocketSource = std::function<Result<std::vector<os::TcpSocket>>(pid_t pid)>;

class SocketCounters : public CounterGroup {
 public:
  // Default source: the kernel's sock_diag, else /proc/PID/net/tcp.
  SocketCounters(const os::ProcFs& proc, SocketOwners& owners, SeriesBook& book, Clock clock,
                 SocketSource source = {});
  const char* name() const override { return "socket queues"; }
  void poll(const LiveTasks& tasks) override;
  // All TCP sockets of a process's network namespace. pid 0: Assay's own.
  Result<std::vector<os::TcpSocket>> sockets_beside(pid_t pid) { return source_(pid); }

 private:
  static constexpr size_t kMaxPorts = 32;  // of each kind; the others share one group
  static constexpr size_t kMaxNamespaces = 16;

  enum Gauge { connections, recv_q, recv_q_max, send_q, send_q_max, rtt, rtt_max, gauge_count };
  enum Counter {
    retransmits,
    bytes_received,
    bytes_acked,
    rwnd_limited,
    sndbuf_limited,
    counter_count
  };
  struct Traffic {  // one group of connections
    std::array<int64_t, gauge_count> gauges{};
    std::array<int64_t, counter_count> counters{};
    int64_t with_info = 0;
    std::array<Track, gauge_count> gauge_tracks;
    std::array<Track, counter_count> counter_tracks;
  };
  struct Backlog {  // one listening address
    int64_t waiting = 0, limit = 0;
    Track waiting_track, limit_track;
  };
  struct Namespace {
    std::unordered_map<uint64_t, os::TcpInfo> last;  // by cookie: of every socket, so that one that
                                                     // is found to be ours later brings no history
    bool seen_before = false;
    std::set<uint16_t> listen_ports;
  };

  Result<std::vector<os::TcpSocket>> from_kernel(pid_t pid);
  void begin_poll();
  void add_sockets(Namespace& space, const std::vector<os::TcpSocket>& sockets);
  void add_connection(Namespace& space, const os::TcpSocket& socket);
  std::optional<std::string> label_of(const Namespace& space, const os::TcpSocket& socket) const;
  void write_points();
  void give_note_once(const std::string& text, const std::string& remedy);

  const os::ProcFs& proc_;
  SocketOwners& owners_;
  SeriesBook& book_;
  Clock clock_;
  SocketSource source_;
  std::map<std::string, std::optional<os::TcpDiag>> diags_;  // by namespace; nullopt: refused
  std::map<std::string, Namespace> namespaces_;
  std::map<std::string, Traffic> traffic_;
  std::map<std::string, Backlog> backlogs_;
  std::set<std::string> notes_given_;
};

}  // namespace assay::capture
