// The part of HTTP/1.1 that libassay's server implements: one request per connection, bodies of
// known length.
//
// In: bytes from a socket, hostile. Out: a request whose texts point into those bytes (decoded in
// place). Limits: kMaxHeadBytes of head, kMaxBodyBytes of body. Failures: `bad` with the status to
// answer.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::inproc {

inline constexpr size_t kMaxHeadBytes = 16 << 10;
inline constexpr size_t kMaxBodyBytes = 4 << 20;

struct HttpRequest {
  std::string_view method, path, query, host, authorization, body;
  bool is_head() const { return method == "HEAD"; }
};

enum class HttpParse { incomplete, complete, bad };

// `status` is set when the parse is bad: 400, 411, 413, 431, 501, 505. Does not change the bytes;
// the path of `request` is still encoded: decode_path, called once, decodes its %XX in place.
HttpParse parse_request(char* bytes, size_t size, HttpRequest& request, int& status);
// False: it has control characters.
bool decode_path(HttpRequest& request);

// A value of the query, decoded into `room`; false: there is none. Longer values are cut.
bool query_value(std::string_view query, std::string_view name, char* room, size_t room_bytes);

// Without std::string_view's own, which may throw and so needs the C++ run-time library.
inline bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && std::string_view(text.data(), prefix.size()) == prefix;
}

// Whether they are equal, ignoring the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

const char* reason_of(int status);

}  // namespace assay::inproc
