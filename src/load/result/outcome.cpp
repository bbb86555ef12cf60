#include "load/result/outcome.h"

#include <algorithm>
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

constexpr int kGrpcUnavailable = 14;
constexpr int kLastGrpcStatus = static_cast<int>(kGrpcStatuses.size()) - 1;

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

bool refuses_request(const Outcome& outcome) {
  // INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED
  constexpr std::array kRefusals{3, 5, 7, 12, 16};
  constexpr int kTimedOut = 408, kTooMany = 429;
  if (outcome.kind == OutcomeKind::status_4xx)
    return outcome.code != kTimedOut && outcome.code != kTooMany;
  return outcome.kind == OutcomeKind::grpc_status &&
         std::ranges::find(kRefusals, outcome.code) != kRefusals.end();
}

bool is_an_answer(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::status_4xx ||
         (outcome.kind == OutcomeKind::grpc_status && outcome.code != kGrpcUnavailable);
}

bool could_not_reach(const Error& error) {
  // A gRPC status or an errno; those of sockets are above the last status.
  return error.code == kGrpcUnavailable || error.code > kLastGrpcStatus;
}

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
