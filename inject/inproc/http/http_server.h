// The HTTP server inside the host: one thread that reads requests, a few that answer them.
//
// The reader polls every connection, so a slow client costs a slot and no thread; a request that is
// incomplete after kRequestMs, or an answer that the client has not read after kAnswerMs, ends the
// connection. All threads are libassay's own and block all signals. At most kMaxConnections wait
// and kMaxWorkers answer; beyond that 503. Loopback and unix sockets only, unless every request
// must carry a token.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/http/http_request.h"

namespace assay::inproc {

inline constexpr int kMaxConnections = 64;
inline constexpr int kMaxWorkers = 8;
inline constexpr int64_t kRequestMs = 5'000;
inline constexpr int64_t kAnswerMs = 10'000;

struct HttpAnswer {
  int status = 200;
  const char* content_type = "text/plain; charset=utf-8";
  char file_name[64] = "";   // for Content-Disposition; "": none
  ByteBuffer location;       // empty: none
  bool pprof_error = false;  // X-Go-Pprof: 1
  ByteBuffer body;
};

class HttpExchange {
 public:
  HttpExchange(const HttpRequest& request_in, int fd) : request(request_in), fd_(fd) {}
  const HttpRequest& request;
  HttpAnswer answer;

  // Sleeps; false when the client closes the connection or the server is stopped meanwhile.
  bool sleep_ms(int64_t ms);

 private:
  int fd_;
};

using HttpHandler = void (*)(HttpExchange& exchange);

// The port (0: a unix socket), or -1 and a sentence. One server at a time.
int start_http_server(const char* address, const char* token, HttpHandler handler, char* sentence,
                      size_t room);
void stop_http_server();
bool http_server_runs();
void forget_http_server();  // in a forked child: closes the parent's listener and connections

}  // namespace assay::inproc
