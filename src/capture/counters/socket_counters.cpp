#include "capture/counters/socket_counters.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

namespace assay::capture {
namespace {

using model::SeriesKind;
using model::SeriesScope;

constexpr SeriesSpec of_socket(SeriesKind kind, const char* name, const char* unit) {
  return {SeriesScope::socket, kind, name, unit};
}
constexpr std::array kGaugeSpecs{of_socket(SeriesKind::gauge, "connections", "count"),
                                 of_socket(SeriesKind::gauge, "recv_q", "bytes"),
                                 of_socket(SeriesKind::gauge, "recv_q_max", "bytes"),
                                 of_socket(SeriesKind::gauge, "send_q", "bytes"),
                                 of_socket(SeriesKind::gauge, "send_q_max", "bytes"),
                                 of_socket(SeriesKind::gauge, "rtt", "ns"),
                                 of_socket(SeriesKind::gauge, "rtt_max", "ns")};
constexpr std::array kCounterSpecs{of_socket(SeriesKind::cumulative, "retransmits", "count"),
                                   of_socket(SeriesKind::cumulative, "bytes_received", "bytes"),
                                   of_socket(SeriesKind::cumulative, "bytes_acked", "bytes"),
                                   of_socket(SeriesKind::cumulative, "rwnd_limited", "ns"),
                                   of_socket(SeriesKind::cumulative, "sndbuf_limited", "ns")};
constexpr SeriesSpec kBacklog = of_socket(SeriesKind::gauge, "accept_backlog", "count");
constexpr SeriesSpec kBacklogLimit = of_socket(SeriesKind::gauge, "accept_backlog_limit", "count");

std::string how_to_be_allowed() {
  return ::geteuid() == 0 ? "" : "run Assay as root (sudo)";
}

// A kernel counter that decreased belongs to another socket or is wrong: it adds nothing.
int64_t grown(uint64_t now, uint64_t before) {
  return now > before ? to_value(now - before) : 0;
}
int64_t grown(int64_t now, int64_t before) {
  return std::max<int64_t>(now - before, 0);
}

// The group's own entry, or the one that all share once there are too many.
template <class Map>
typename Map::mapped_type& entry_for(Map& map, const std::string& label, size_t limit,
                                     const char* others) {
  auto found = map.find(label);
  if (found != map.end()) return found->second;
  return map.size() < limit ? map[label] : map[others];
}

}  // namespace

SocketCounters::SocketCounters(const os::ProcFs& proc, SocketOwners& owners, SeriesBook& book,
                               Clock clock, SocketSource source)
    : proc_(proc),
      owners_(owners),
      book_(book),
      clock_(std::move(clock)),
      source_(std::move(source)) {
  if (!source_) source_ = [this](pid_t pid) { return from_kernel(pid); };
}

void SocketCounters::give_note_once(const std::string& text, const std::string& remedy) {
  if (notes_given_.insert(text).second) book_.sink().add_note({"sockets", text, remedy});
}

Result<std::vector<os::TcpSocket>> SocketCounters::from_kernel(pid_t pid) {
  std::string space = os::network_namespace(pid, proc_.root());
  auto found = diags_.find(space);
  if (found == diags_.end()) {
    found = diags_.emplace(space, std::nullopt).first;
    auto opened = os::TcpDiag::open(pid, proc_.root());
    if (opened) found->second = std::move(*opened);
  }
  if (found->second) {
    auto sockets = found->second->dump();
    if (sockets) return sockets;
    found->second.reset();  // once refused, always refused: do not try again
  }
  // A process that has ended has no sockets, and nothing was refused.
  auto stat = proc_.stat(pid);
  if (!stat || stat->state == 'Z') return fail("process {} has ended", pid);
  give_note_once(
      "sock_diag is refused: queues come from /proc/net/tcp, without round-trip times, "
      "retransmits and accept limits",
      how_to_be_allowed());
  return os::read_net_tcp(pid, proc_.root());
}

void SocketCounters::poll(const LiveTasks& tasks) {
  owners_.note_new(tasks);
  if (owners_.refused()) {
    give_note_once("the open files of the target may not be read: its sockets are unknown",
                   how_to_be_allowed());
  }
  begin_poll();
  std::set<std::string> seen;
  for (const LiveProcess& process : tasks.processes) {
    std::string space = os::network_namespace(process.pid, proc_.root());
    if (seen.size() >= kMaxNamespaces || !seen.insert(space).second) continue;
    auto sockets = source_(process.pid);
    if (sockets) add_sockets(namespaces_[space], *sockets);
  }
  write_points();
}

void SocketCounters::begin_poll() {
  for (auto& [label, traffic] : traffic_) {
    traffic.gauges.fill(0);
    traffic.with_info = 0;
  }
  for (auto& [label, backlog] : backlogs_) backlog.waiting = backlog.limit = 0;
}

void SocketCounters::add_sockets(Namespace& space, const std::vector<os::TcpSocket>& sockets) {
  space.listen_ports.merge(listen_ports(sockets, owners_));
  for (const os::TcpSocket& socket : sockets) {
    if (socket.state != os::TcpState::listen || !owners_.owns(socket.inode)) continue;
    // For clients, several listeners of one address (SO_REUSEPORT) are one queue.
    Backlog& backlog =
        entry_for(backlogs_, socket.local.text() + " listen", kMaxPorts, "other listeners");
    backlog.waiting += socket.recv_q;
    backlog.limit += socket.send_q;
  }
  std::unordered_map<uint64_t, os::TcpInfo> current;
  current.reserve(sockets.size());
  for (const os::TcpSocket& socket : sockets) {
    if (socket.state == os::TcpState::listen) continue;
    add_connection(space, socket);
    if (socket.info) current.emplace(socket.cookie, *socket.info);
  }
  space.last = std::move(current);
  space.seen_before = true;
}

std::optional<std::string> SocketCounters::label_of(const Namespace& space,
                                                    const os::TcpSocket& socket) const {
  auto direction = direction_of(socket, owners_, space.listen_ports);
  if (!direction) return {};
  return *direction == Direction::inbound ? fmt::format("port {} inbound", socket.local.port)
                                          : fmt::format("to port {} outbound", socket.remote.port);
}

void SocketCounters::add_connection(Namespace& space, const os::TcpSocket& socket) {
  auto label = label_of(space, socket);
  if (!label) return;
  bool inbound = label->ends_with("inbound");
  Traffic& traffic = entry_for(traffic_, *label, 2 * kMaxPorts,
                               inbound ? "other ports inbound" : "to other ports outbound");
  auto& gauges = traffic.gauges;
  ++gauges[connections];
  gauges[recv_q] += socket.recv_q;
  gauges[recv_q_max] = std::max<int64_t>(gauges[recv_q_max], socket.recv_q);
  gauges[send_q] += socket.send_q;
  gauges[send_q_max] = std::max<int64_t>(gauges[send_q_max], socket.send_q);
  if (!socket.info) return;
  ++traffic.with_info;
  gauges[rtt] += socket.info->rtt_ns;  // the sum, until the mean is written
  gauges[rtt_max] = std::max(gauges[rtt_max], socket.info->rtt_ns);

  auto found = space.last.find(socket.cookie);
  // On the first poll every connection has counts from before the window: they are not added.
  if (found == space.last.end() && !space.seen_before) return;
  const os::TcpInfo before = found == space.last.end() ? os::TcpInfo{} : found->second;
  auto& counters = traffic.counters;
  counters[retransmits] += grown(socket.info->retransmits, before.retransmits);
  counters[bytes_received] += grown(socket.info->bytes_received, before.bytes_received);
  counters[bytes_acked] += grown(socket.info->bytes_acked, before.bytes_acked);
  counters[rwnd_limited] += grown(socket.info->rwnd_limited_ns, before.rwnd_limited_ns);
  counters[sndbuf_limited] += grown(socket.info->sndbuf_limited_ns, before.sndbuf_limited_ns);
}

void SocketCounters::write_points() {
  TimeNs now = clock_();
  for (auto& [label, backlog] : backlogs_) {
    book_.put(backlog.waiting_track, kBacklog, 0, label, now, backlog.waiting);
    if (backlog.limit > 0 || backlog.limit_track.id != Track::kUnregistered) {
      book_.put(backlog.limit_track, kBacklogLimit, 0, label, now, backlog.limit);
    }
  }
  for (auto& [label, traffic] : traffic_) {
    if (traffic.with_info > 0) traffic.gauges[rtt] /= traffic.with_info;
    for (size_t i = 0; i < gauge_count; ++i) {
      bool from_info = i == rtt || i == rtt_max;
      if (from_info && traffic.with_info == 0) continue;
      book_.put(traffic.gauge_tracks[i], kGaugeSpecs[i], 0, label, now, traffic.gauges[i]);
    }
    bool has_counters =
        traffic.with_info > 0 || traffic.counter_tracks[0].id != Track::kUnregistered;
    for (size_t i = 0; has_counters && i < counter_count; ++i) {
      book_.put(traffic.counter_tracks[i], kCounterSpecs[i], 0, label, now, traffic.counters[i]);
    }
  }
}

}  // namespace assay::capture
