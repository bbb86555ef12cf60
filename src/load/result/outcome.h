// Outcome: how one request ended. The kind says it roughly (refused, timed out, 5xx, …); the code
// says it exactly: the HTTP status, the gRPC status, errno, an HTTP/2 error code.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::load {

enum class OutcomeKind : uint8_t {
  ok,
  connect,       // no connection could be made; code: errno
  tls,           // no TLS session could be made
  timeout,       // no answer in time
  reset,         // the peer reset the connection; code: errno
  closed,        // the peer closed the connection before its answer was complete
  protocol,      // the answer was not what the protocol allows
  stream_reset,  // the peer reset the HTTP/2 stream; code: HTTP/2 error code
  status_4xx,    // code: HTTP status
  status_5xx,    // and anything else that is neither 2xx nor 3xx
  grpc_status,   // code: gRPC status
};
inline constexpr int kOutcomeKinds = 11;

struct Outcome {
  OutcomeKind kind = OutcomeKind::ok;
  int code = 0;
  auto operator<=>(const Outcome&) const = default;
  bool ok() const { return kind == OutcomeKind::ok; }
};

// The server will give the same answer next time: the path or method does not exist, or may not be
// called like this.
bool refuses_request(const Outcome& outcome);
// The server was reached and answered with an error of its own; the connection works.
bool is_an_answer(const Outcome& outcome);
// An error of generate() that may go away: the server cannot be reached (yet). Waiting does not
// help against the others.
bool could_not_reach(const Error& error);

Outcome http_outcome(int status);
std::string_view kind_name(OutcomeKind kind);  // "status_5xx"
// "HTTP 503", "gRPC 14 UNAVAILABLE", "connection refused", …
std::string describe(const Outcome& outcome);

}  // namespace assay::load
