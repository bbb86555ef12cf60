// LoopbackListener: a TCP socket that listens on a free port of the loopback, closed with the
// object. For tests only; a failure throws.
#pragma once

#include <cstdint>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace assay {

class LoopbackListener {
 public:
  explicit LoopbackListener(int backlog = 8)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_.get(), generic, size) != 0 || ::listen(fd_.get(), backlog) != 0 ||
        ::getsockname(fd_.get(), generic, &size) != 0)
      throw std::runtime_error("cannot listen on the loopback");
    port_ = ntohs(address.sin_port);
  }

  int fd() const { return fd_.get(); }
  // A connection to it; not valid where there was none to be had.
  UniqueFd connect() const {
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      client.reset();
    return client;
  }
  uint16_t port() const { return port_; }

 private:
  UniqueFd fd_;
  uint16_t port_ = 0;
};

}  // namespace assay
