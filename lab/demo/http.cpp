#include "lab/demo/http.h"

#include <charconv>

namespace lab::http {

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

// The value of a header in a head, by its exact name; "" when it is not there.
std::string_view header(std::string_view head, std::string_view name) {
  size_t at = head.find(std::string("\r\n") + std::string(name) + ": ");
  if (at == std::string_view::npos) return {};
  head.remove_prefix(at + 2 + name.size() + 2);
  return head.substr(0, head.find('\r'));
}

std::optional<long> parse_number(std::string_view text) {
  long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Parse take_request(std::string& buffer, Request& request) {
  size_t end = buffer.find(kHeadEnd);
  if (end == std::string::npos) {
    return buffer.size() > kMaxHeadBytes ? Parse::bad : Parse::incomplete;
  }
  std::string_view head(buffer.data(), end);
  if (!head.starts_with("GET ")) return Parse::bad;
  size_t path_end = head.find(' ', 4);
  if (path_end == std::string_view::npos) return Parse::bad;
  request.path = head.substr(4, path_end - 4);
  request.keep_alive = header(head, "Connection") != "close";
  buffer.erase(0, end + kHeadEnd.size());
  return Parse::complete;
}

Parse take_response(std::string& buffer, Response& response) {
  size_t end = buffer.find(kHeadEnd);
  if (end == std::string::npos) {
    return buffer.size() > kMaxHeadBytes ? Parse::bad : Parse::incomplete;
  }
  std::string_view head(buffer.data(), end);
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) return Parse::bad;
  auto status = parse_number(head.substr(9, 3));
  auto length = parse_number(header(head, "Content-Length"));
  if (!status || !length) return Parse::bad;
  size_t whole = end + kHeadEnd.size() + static_cast<size_t>(*length);
  if (buffer.size() < whole) return Parse::incomplete;
  response = {static_cast<int>(*status), static_cast<size_t>(*length)};
  buffer.erase(0, whole);
  return Parse::complete;
}

std::string make_request(std::string_view path) {
  std::string text = "GET ";
  text += path;
  text += " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  return text;
}

std::string make_response(int status, std::string_view json) {
  std::string text = "HTTP/1.1 ";
  text += std::to_string(status);
  text += status == 200 ? " OK" : " Not Found";
  text += "\r\nContent-Type: application/json\r\nContent-Length: ";
  text += std::to_string(json.size());
  text += "\r\n\r\n";
  text += json;
  return text;
}

std::optional<long> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return parse_number(text.substr(prefix.size()));
}

}  // namespace lab::http
