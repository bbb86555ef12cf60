#include "lab/common/http.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace lab::http {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool take_header(std::string_view line, Request& request, size_t& body_bytes) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (equal_ignoring_case(name, "content-length")) {
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), body_bytes);
    return error == std::errc() && end == value.data() + value.size();
  }
  if (equal_ignoring_case(name, "transfer-encoding")) return false;  // bodies of known length only
  if (equal_ignoring_case(name, "authorization")) request.authorization = value;
  if (equal_ignoring_case(name, "connection") && equal_ignoring_case(value, "close")) {
    request.keep_alive = false;
  }
  return true;
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

}  // namespace

Parse take_request(std::string& buffer, Request& request) {
  size_t head_end = buffer.find("\r\n\r\n");
  if (head_end == std::string::npos) {
    return buffer.size() > kMaxHeadBytes ? Parse::bad : Parse::incomplete;
  }
  if (head_end > kMaxHeadBytes) return Parse::bad;
  std::string_view head(buffer.data(), head_end);
  request = Request{};
  size_t line_end = std::min(head.find("\r\n"), head.size());
  std::string_view first = head.substr(0, line_end);
  size_t space = first.find(' '), second = first.rfind(' ');
  if (space == std::string_view::npos || second == space) return Parse::bad;
  std::string_view version = first.substr(second + 1);
  if (!version.starts_with("HTTP/1.")) return Parse::bad;
  request.method = first.substr(0, space);
  request.path = first.substr(space + 1, second - space - 1);
  request.keep_alive = version != "HTTP/1.0";
  size_t body_bytes = 0;
  for (size_t at = line_end + 2; at < head.size();) {
    size_t end = std::min(head.find("\r\n", at), head.size());
    if (!take_header(head.substr(at, end - at), request, body_bytes)) return Parse::bad;
    at = end + 2;
  }
  if (body_bytes > kMaxBodyBytes) return Parse::bad;
  if (buffer.size() < head_end + 4 + body_bytes) return Parse::incomplete;
  request.body = buffer.substr(head_end + 4, body_bytes);
  buffer.erase(0, head_end + 4 + body_bytes);
  return Parse::complete;
}

std::string make_response(int status, std::string_view content_type, std::string_view body) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + reason(status) + "\r\n";
  out.append("Content-Type: ").append(content_type);
  out += "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return out.append(body);
}

std::string make_chunked_head(std::string_view content_type) {
  std::string out = "HTTP/1.1 200 OK\r\nContent-Type: ";
  return out.append(content_type).append("\r\nTransfer-Encoding: chunked\r\n\r\n");
}

std::string make_chunk(std::string_view data) {
  char size[20];
  auto [end, error] = std::to_chars(size, size + sizeof size, data.size(), 16);
  std::string out(size, end);
  return out.append("\r\n").append(data).append("\r\n");
}

}  // namespace lab::http
