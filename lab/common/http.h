// The part of HTTP/1.1 that the lab's servers implement: requests with a body of known length,
// keep-alive, responses in one piece or in chunks.
//
// In: bytes as they came from a socket. Out: whole requests, taken from the front of the buffer.
// Failures: bytes that are not HTTP, a head beyond 16 kB or a body beyond 1 MB make the parse
// `bad`; answer 400 and close the connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lab::http {

inline constexpr size_t kMaxHeadBytes = 16 * 1024;
inline constexpr size_t kMaxBodyBytes = 1024 * 1024;

enum class Parse { incomplete, complete, bad };

struct Request {
  std::string method, path, authorization, body;
  bool keep_alive = true;
};

Parse take_request(std::string& buffer, Request& request);

std::string make_response(int status, std::string_view content_type, std::string_view body);
std::string make_chunked_head(std::string_view content_type);
std::string make_chunk(std::string_view data);  // empty data ends the response

}  // namespace lab::http
