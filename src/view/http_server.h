// HttpServer: answers HTTP/1.1 for one user of this machine, and refuses all others.
//
// Every path begins with an unguessable token; the Host header must name the address the server is
// bound to, so that no other site's page can reach it under its own name. No file is ever opened by
// a path from a request. Bounds: header and body size, time to send a request and to take an
// answer, connections at once. A connection that has not shown the token is a stranger: strangers
// have little time and few places, and a new one takes the place of the one that has waited
// longest. So silent connections cannot keep the page's owner out. In: a
// handler, called on worker threads with the target that follows the token, and told when the asker
// closes the connection meanwhile. Out: answers with headers that let the page reach nothing but
// this server. Threads: run() blocks; stop() may be called from any thread and from a signal
// (SIGINT, SIGTERM while run() runs). Failures: start() says why a port cannot be had; errors of
// one connection end that connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "view/api.h"

namespace assay::view {

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: a free one
  int socket = -1;    // that listens there already (listen_on()); -1: start() makes one
  std::string token;
  size_t header_limit = 16 << 10;
  size_t body_limit = 4 << 20;
  size_t most_connections = 64;  // that have shown the token
  size_t most_strangers = 64;
  std::chrono::milliseconds patience{10'000};  // for a whole request, and for a whole answer
  std::chrono::milliseconds stranger_patience{3'000};  // for a first request
  bool stop_on_signals = true;
};

// A socket that listens, for a server that may not make one itself. Failures: as start().
Result<UniqueFd> listen_on(const std::string& address, uint16_t port);

using Handler = std::function<Response(const Request&)>;

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(const ServerOptions& options, Handler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  virtual std::string url() const = 0;  // with the token
  virtual void run() = 0;               // until stop()
  virtual void stop() = 0;
};

// 32 hexadecimal digits from the kernel's random numbers.
Result<std::string> new_token();

bool is_loopback(const std::string& address);

// Does a Host header name a server bound to this address and port?
bool host_matches(std::string_view host, const std::string& address, uint16_t port);

}  // namespace assay::view
