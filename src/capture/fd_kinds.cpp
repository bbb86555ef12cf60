#include "capture/fd_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <sstream>
#include <vector>

namespace assay::capture {
namespace {

using model::FdKind;

constexpr size_t kMaxEntries = 100'000;

struct LinkKind {
  std::string_view prefix;
  FdKind kind;
};
constexpr std::array kLinkKinds{
    LinkKind{"pipe:", FdKind::pipe},
    LinkKind{"anon_inode:[eventpoll]", FdKind::epoll},
    LinkKind{"anon_inode:[eventfd", FdKind::eventfd},
    LinkKind{"anon_inode:[timerfd]", FdKind::timerfd},
    LinkKind{"anon_inode:[signalfd]", FdKind::signalfd},
    LinkKind{"anon_inode:[io_uring]", FdKind::io_uring},
    LinkKind{"anon_inode:inotify", FdKind::inotify},
    LinkKind{"/dev/", FdKind::device},
    LinkKind{"/", FdKind::file},
};

// The n-th blank-separated word of a line, counted from 0; empty when there is none.
std::string_view word(std::string_view line, int n) {
  size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return {};
    size_t end = std::min(line.find_first_of(" \t", at), line.size());
    if (n-- == 0) return line.substr(at, end - at);
    at = end;
  }
}

uint64_t to_number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

FdKind kind_of_link(std::string_view link) {
  for (const LinkKind& known : kLinkKinds) {
    if (link.starts_with(known.prefix)) return known.kind;
  }
  return FdKind::other;
}

FdKind FdKinds::kind_of(pid_t pid, int fd, TimeNs now) {
  if (fd < 0) return FdKind::none;
  if (entries_.size() > kMaxEntries) entries_.clear();
  Entry& entry = entries_[static_cast<uint64_t>(pid) << 32 | static_cast<uint32_t>(fd)];
  if (entry.looked_up_at == 0 || now - entry.looked_up_at > kNsPerSecond) {
    entry.kind = look_up(pid, fd, now);
    entry.looked_up_at = now;
  }
  return entry.kind;
}

FdKind FdKinds::look_up(pid_t pid, int fd, TimeNs now) {
  auto link = proc_.fd_link(pid, fd);
  if (!link) return FdKind::none;
  if (link->starts_with("socket:[")) return socket_kind(pid, *link, now);
  return kind_of_link(*link);
}

FdKind FdKinds::socket_kind(pid_t pid, std::string_view link, TimeNs now) {
  uint64_t inode = os::socket_inode(link).value_or(0);
  SocketTable& table = sockets_[pid];
  auto known = table.kind_by_inode.find(inode);
  if (known != table.kind_by_inode.end()) return known->second;
  if (now - table.read_at < kNsPerSecond) return FdKind::socket_stream;
  read_sockets(pid, table);
  table.read_at = now;
  known = table.kind_by_inode.find(inode);
  // TCP sockets that are neither bound nor connected are in no table.
  return known == table.kind_by_inode.end() ? FdKind::socket_stream : known->second;
}

void FdKinds::read_sockets(pid_t pid, SocketTable& table) {
  constexpr std::string_view kTcpListen = "0A", kTcpEstablished = "01";
  struct Source {
    const char* file;
    int inode_column;
    FdKind kind;
  };
  constexpr std::array kSources{
      Source{"tcp", 9, FdKind::socket_stream}, Source{"tcp6", 9, FdKind::socket_stream},
      Source{"udp", 9, FdKind::socket_datagram}, Source{"udp6", 9, FdKind::socket_datagram},
      Source{"unix", 6, FdKind::socket_unix}};
  table.kind_by_inode.clear();
  std::set<std::string, std::less<>> listened_on;             // local ports, as /proc writes them
  std::vector<std::pair<uint64_t, std::string>> connections;  // inode and local port
  for (const Source& source : kSources) {
    auto text = proc_.read(fmt::format("{}/net/{}", pid, source.file));
    if (!text) continue;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      uint64_t inode = to_number(word(line, source.inode_column));
      if (inode == 0) continue;
      table.kind_by_inode[inode] = source.kind;
      if (source.kind != FdKind::socket_stream) continue;
      std::string_view address = word(line, 1);
      std::string port(address.substr(std::min(address.size(), address.rfind(':') + 1)));
      if (word(line, 3) == kTcpListen) {
        table.kind_by_inode[inode] = FdKind::socket_listen;
        listened_on.insert(std::move(port));
      } else if (word(line, 3) == kTcpEstablished) {
        connections.emplace_back(inode, std::move(port));
      }
    }
  }
  for (const auto& [inode, port] : connections) {
    table.kind_by_inode[inode] =
        listened_on.contains(port) ? FdKind::socket_accepted : FdKind::socket_connected;
  }
}

void FdKinds::forget(pid_t pid) {
  sockets_.erase(pid);
  std::erase_if(entries_,
                [pid](const auto& entry) { return static_cast<pid_t>(entry.first >> 32) == pid; });
}

}  // namespace assay::capture
