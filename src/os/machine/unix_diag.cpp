#include "os/machine/unix_diag.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include "os/machine/sock_diag.h"

namespace assay::os {
namespace {

constexpr size_t kMaxSockets = 1 << 20;
constexpr uint32_t kEstablished = 1;  // the kernel's TCP_ESTABLISHED, which unix sockets use too

}  // namespace

Result<UnixSocket> parse_unix_message(std::span<const uint8_t> payload) {
  if (payload.size() < sizeof(unix_diag_msg)) return fail("a sock_diag message is cut off");
  auto message = read_as<unix_diag_msg>(payload);
  UnixSocket socket;
  socket.inode = message.udiag_ino;
  auto visited = visit_attributes(payload.subspan(std::min(align4(sizeof message), payload.size())),
                                  [&](uint16_t type, std::span<const uint8_t> value) {
                                    if (type == UNIX_DIAG_PEER && value.size() >= 4) {
                                      socket.peer = read_as<uint32_t>(value);
                                    }
                                    if (type == UNIX_DIAG_NAME) socket.named = !value.empty();
                                  });
  if (!visited) return std::unexpected(visited.error());
  return socket;
}

Result<std::vector<UnixSocket>> read_unix_sockets(pid_t pid, const std::string& proc_root) {
  auto fd = open_sock_diag(pid, proc_root);
  if (!fd) return std::unexpected(fd.error());
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.header.nlmsg_seq = 1;
  ask.request.sdiag_family = AF_UNIX;
  ask.request.udiag_states = 1u << kEstablished;
  ask.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER;
  std::vector<UnixSocket> sockets;
  auto dumped =
      dump_sock_diag(fd->get(), std::span(reinterpret_cast<const uint8_t*>(&ask), sizeof ask), 1,
                     [&](std::span<const uint8_t> payload) -> Result<void> {
                       auto socket = parse_unix_message(payload);
                       if (!socket) return std::unexpected(socket.error());
                       if (sockets.size() >= kMaxSockets)
                         return fail("more unix sockets than can be listed");
                       if (socket->peer != 0) sockets.push_back(*socket);
                       return {};
                     });
  if (!dumped) return std::unexpected(dumped.error());
  return sockets;
}

}  // namespace assay::os
