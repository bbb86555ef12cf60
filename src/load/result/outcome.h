// Outcome: how one request ended. Kinds are what a person asks first ("refused? timed out? 5xx?");
// the code tells more: the HTTP status, the gRPC status, errno, an HTTP/2 error code.
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

// The server will answer this request so the next time, too: there is no such path or method, or
// it may not be called like this.
bool refuses_request(const Outcome& outcome);
// The server is there, if not well: an error of its own, not one of the way to it.
bool is_an_answer(const Outcome& outcome);
// Of generate()'s errors: nobody was there (yet). The others do not go away by waiting.
bool could_not_reach(const Error& error);

Outcome http_outcome(int status);
std::string_view kind_name(OutcomeKind kind);  // "status_5xx"
// "HTTP 503", "gRPC 14 UNAVAILABLE", "connection refused", …
std::string describe(const Outcome& outcome);

}  // namespace assay::load
