#include "load/outcome.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

namespace assay::load {
namespace {

constexpr std::array<std::string_view, kOutcomeKinds> kKindNames{
    "ok",       "connect",      "tls",        "timeout",    "reset",      "closed",
    "protocol", "stream_reset", "status_4xx", "status_5xx", "grpc_status"};

constexpr std::array<std::string_view, 17> kGrpcStatuses{
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

constexpr std::array<std::string_view, 14> kHttp2Errors{"NO_ERROR",
                                                        "PROTOCOL_ERROR",
                                                        "INTERNAL_ERROR",
                                                        "FLOW_CONTROL_ERROR",
                                                        "SETTINGS_TIMEOUT",
                                                        "STREAM_CLOSED",
                                                        "FRAME_SIZE_ERROR",
                                                        "REFUSED_STREAM",
                                                        "CANCEL",
                                                        "COMPRESSION_ERROR",
                                                        "CONNECT_ERROR",
                                                        "ENHANCE_YOUR_CALM",
                                                        "INADEQUATE_SECURITY",
                                                        "HTTP_1_1_REQUIRED"};

template <size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, int code) {
  return code >= 0 && static_cast<size_t>(code) < N ? names[static_cast<size_t>(code)] : "unknown";
}

}  // namespace

Outcome http_outcome(int status) {
  if (status >= 200 && status < 400) return {};
  bool client = status >= 400 && status < 500;
  return {client ? OutcomeKind::status_4xx : OutcomeKind::status_5xx, status};
}

std::string_view kind_name(OutcomeKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

std::string describe(const Outcome& outcome) {
  using enum OutcomeKind;
  switch (outcome.kind) {
    case ok:
      return "ok";
    case connect:
      return fmt::format("cannot connect: {}", std::strerror(outcome.code));
    case tls:
      return "no TLS session";
    case timeout:
      return "no answer in time";
    case reset:
      return fmt::format("connection lost: {}", std::strerror(outcome.code));
    case closed:
      return "connection closed before the answer was complete";
    case protocol:
      return "malformed answer";
    case stream_reset:
      return fmt::format("stream reset: {}", name_in(kHttp2Errors, outcome.code));
    case status_4xx:
    case status_5xx:
      return fmt::format("HTTP {}", outcome.code);
    case grpc_status:
      return fmt::format("gRPC {} {}", outcome.code, name_in(kGrpcStatuses, outcome.code));
  }
  return "?";
}

}  // namespace assay::load
