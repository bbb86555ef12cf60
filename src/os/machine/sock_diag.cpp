#include "os/machine/sock_diag.h"

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "os/machine/inet_diag.h"

namespace assay::os {
namespace {

constexpr size_t kReplyBytes = size_t{64} << 10;  // the kernel fills at most 32 KiB per datagram
constexpr int kMaxReplies = 1 << 16;

Result<UniqueFd> open_netlink() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid()) return fail_errno("cannot open a sock_diag netlink socket");
  timeval timeout{.tv_sec = 2,
                  .tv_usec = 0};  // the kernel answers at once; never hang if it does not
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  return fd;
}

// setns() moves only the calling thread, so a thread that ends takes the change with it.
Result<UniqueFd> open_netlink_in(const std::string& namespace_path) {
  UniqueFd space(::open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid()) return fail_errno("cannot open the network namespace {}", namespace_path);
  Result<UniqueFd> opened = fail("the thread did not run");
  std::thread([&] {
    if (::setns(space.get(), CLONE_NEWNET) != 0) {
      opened = fail_errno("cannot enter the network namespace {}", namespace_path);
    } else {
      opened = open_netlink();
    }
  }).join();
  if (!opened && opened.error().code == EPERM) opened.error().remedy = "run Assay as root (sudo)";
  return opened;
}

}  // namespace

Result<UniqueFd> open_sock_diag(pid_t pid, const std::string& proc_root) {
  bool same = pid == 0 || network_namespace(pid, proc_root) == network_namespace(0, proc_root);
  return same ? open_netlink() : open_netlink_in(fmt::format("{}/{}/ns/net", proc_root, pid));
}

Result<bool> visit_diag_messages(std::span<const uint8_t> bytes, uint32_t sequence,
                                 const DiagVisitor& visit) {
  while (!bytes.empty()) {
    if (bytes.size() < sizeof(nlmsghdr)) return fail("a netlink message is cut off");
    auto header = read_as<nlmsghdr>(bytes);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > bytes.size()) {
      return fail("a netlink message has a wrong length");
    }
    auto payload = bytes.subspan(sizeof header, header.nlmsg_len - sizeof header);
    bytes = bytes.subspan(std::min(align4(header.nlmsg_len), bytes.size()));
    if (header.nlmsg_seq != sequence) continue;
    if (header.nlmsg_type == NLMSG_DONE) return true;
    if (header.nlmsg_type == NLMSG_ERROR) {
      errno = static_cast<int>(-static_cast<int64_t>(read_as<int32_t>(payload)));
      return fail_errno("the kernel refused to list its sockets");
    }
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) continue;
    if (auto visited = visit(payload); !visited) return std::unexpected(visited.error());
  }
  return false;
}

Result<void> visit_attributes(std::span<const uint8_t> bytes, const AttributeVisitor& visit) {
  while (bytes.size() >= sizeof(nlattr)) {
    auto attribute = read_as<nlattr>(bytes);
    if (attribute.nla_len < sizeof(nlattr) || attribute.nla_len > bytes.size()) {
      return fail("a sock_diag attribute has a wrong length");
    }
    visit(attribute.nla_type & NLA_TYPE_MASK,
          bytes.subspan(sizeof(nlattr), attribute.nla_len - sizeof(nlattr)));
    bytes = bytes.subspan(std::min(align4(attribute.nla_len), bytes.size()));
  }
  return {};
}

Result<void> dump_sock_diag(int fd, std::span<const uint8_t> request, uint32_t sequence,
                            const DiagVisitor& visit) {
  if (::send(fd, request.data(), request.size(), 0) < 0)
    return fail_errno("cannot ask for sockets");
  alignas(nlmsghdr) uint8_t buffer[kReplyBytes];
  for (int reply = 0; reply < kMaxReplies; ++reply) {
    ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read the list of sockets");
    auto done = visit_diag_messages(std::span(buffer, static_cast<size_t>(got)), sequence, visit);
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
  }
  return fail("the list of sockets does not end");
}

}  // namespace assay::os
