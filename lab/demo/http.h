// The little HTTP/1.1 that the demo speaks: GET with keep-alive, one response per request.
//
// In: bytes as they came from a socket. Out: whole messages, taken from the front of the buffer.
// Failures: bytes that are no HTTP, or a head beyond 16 kB, make the parse `bad`; close the
// connection.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lab::http {

inline constexpr size_t kMaxHeadBytes = 16 * 1024;

enum class Parse { incomplete, complete, bad };

struct Request {
  std::string path;
  bool keep_alive = true;
};

struct Response {
  int status = 0;
  size_t body_bytes = 0;
};

Parse take_request(std::string& buffer, Request& request);
Parse take_response(std::string& buffer, Response& response);

std::string make_request(std::string_view path);
std::string make_response(int status, std::string_view json);

// The decimal number that text ends in, after the prefix; nullopt when it is something else.
std::optional<long> number_after(std::string_view text, std::string_view prefix);

}  // namespace lab::http
