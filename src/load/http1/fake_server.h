// FakeServer: a server in the test's own process; the test supplies what it does with each
// connection. Test support only.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace assay::load {

class FakeServer {
 public:
  // Called on a thread of its own for each connection, with the connection's number; the socket is
  // closed when it returns. It must return soon after the peer closes or stopping() is true.
  using Serve = std::function<void(int fd, int number)>;

  explicit FakeServer(Serve serve) : serve_(std::move(serve)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_.get(), 128);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    stopping_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const { return port_; }
  bool stopping() const { return stopping_; }
  int connections() const { return connections_; }
  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

  // Waits for bytes; false when the peer closed or the server stops.
  bool read_some(int fd, std::string& into) const {
    while (!stopping_) {
      pollfd waiting{fd, POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      char buffer[16384];
      ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
      if (count <= 0) return false;
      into.append(buffer, static_cast<size_t>(count));
      return true;
    }
    return false;
  }
  // One HTTP/1 request head (requests of these tests have no body); false as above.
  bool read_request(int fd, std::string& head) const {
    while (head.find("\r\n\r\n") == std::string::npos) {
      if (!read_some(fd, head)) return false;
    }
    return true;
  }
  static bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  void wait_for_stop_or_close(int fd) const {
    std::string ignored;
    while (read_some(fd, ignored)) ignored.clear();
  }

 private:
  void accept_all() {
    while (!stopping_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      int number = connections_++;
      threads_.emplace_back([this, fd, number] {
        UniqueFd owned(fd);
        serve_(fd, number);
      });
    }
  }

  Serve serve_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // the acceptor's until it is joined
};

}  // namespace assay::load
