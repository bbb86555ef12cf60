#include "inject/inproc/http/http_request.h"

#include <cstring>

namespace assay::inproc {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string_view part(const char* from, const char* to) {
  return {from, static_cast<size_t>(to - from)};
}

// Decodes [from, to) to `into`, which may be the same place; what was written.
size_t decode(const char* from, const char* to, char* into, size_t room, bool plus_is_space) {
  size_t made = 0;
  for (; from < to && made < room; ++from) {
    int high = *from == '%' && to - from > 2 ? hex_digit(from[1]) : -1;
    int low = high >= 0 ? hex_digit(from[2]) : -1;
    if (low >= 0) {
      into[made++] = static_cast<char>(high << 4 | low);
      from += 2;
    } else {
      into[made++] = *from == '+' && plus_is_space ? ' ' : *from;
    }
  }
  return made;
}

// "GET /path?query HTTP/1.1"; 0, or the status to refuse it with.
int parse_first_line(char* from, char* to, HttpRequest& request) {
  auto* space = static_cast<char*>(std::memchr(from, ' ', static_cast<size_t>(to - from)));
  if (space == nullptr || space == from) return 400;
  char* target = space + 1;
  auto* target_end = static_cast<char*>(std::memchr(target, ' ', static_cast<size_t>(to - target)));
  if (target_end == nullptr || *target != '/') return 400;
  std::string_view version = part(target_end + 1, to);
  if (version.size() != 8 || std::memcmp(version.data(), "HTTP/", 5) != 0) return 400;
  if (version[5] != '1' || version[6] != '.') return 505;
  request.method = part(from, space);
  for (char c : request.method)
    if (c < 'A' || c > 'Z') return 400;
  char* question = target;
  while (question < target_end && *question != '?') ++question;
  request.query = question < target_end ? part(question + 1, target_end) : std::string_view();
  request.path = part(target, question);
  return 0;
}

// One field of the head; 0, or the status to refuse the request with.
int parse_field(std::string_view name, std::string_view value, HttpRequest& request, size_t& body) {
  if (same_word(name, "host")) request.host = value;
  if (same_word(name, "authorization")) request.authorization = value;
  if (same_word(name, "transfer-encoding")) return 501;
  if (!same_word(name, "content-length")) return 0;
  if (value.empty()) return 400;
  size_t length = 0;
  for (char c : value) {
    if (c < '0' || c > '9') return 400;
    length = length * 10 + static_cast<size_t>(c - '0');
    if (length > kMaxBodyBytes) return 413;
  }
  if (body != 0 && body != length) return 400;
  body = length;
  return 0;
}

int parse_fields(char* from, char* to, HttpRequest& request, size_t& body) {
  while (from < to) {
    auto* end = static_cast<char*>(memmem(from, static_cast<size_t>(to - from), "\r\n", 2));
    if (end == nullptr) end = to;
    auto* colon = static_cast<char*>(std::memchr(from, ':', static_cast<size_t>(end - from)));
    if (colon == nullptr || colon == from || *from == ' ' || *from == '\t') return 400;
    char *value = colon + 1, *value_end = end;
    while (value < value_end && (*value == ' ' || *value == '\t')) ++value;
    while (value < value_end && (value_end[-1] == ' ' || value_end[-1] == '\t')) --value_end;
    int status = parse_field(part(from, colon), part(value, value_end), request, body);
    if (status != 0) return status;
    from = end + 2;
  }
  return 0;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

HttpParse parse_request(char* bytes, size_t size, HttpRequest& request, int& status) {
  auto* end = size == 0 ? nullptr : static_cast<char*>(memmem(bytes, size, "\r\n\r\n", 4));
  size_t head = end == nullptr ? size : static_cast<size_t>(end - bytes);
  if (head > kMaxHeadBytes) {
    status = 431;
    return HttpParse::bad;
  }
  if (end == nullptr) {
    // Not a request (a TLS hello, for example): do not wait for more.
    bool plausible = size == 0 || (bytes[0] >= 'A' && bytes[0] <= 'Z');
    status = 400;
    return plausible ? HttpParse::incomplete : HttpParse::bad;
  }
  auto* line_end = static_cast<char*>(memmem(bytes, head + 2, "\r\n", 2));
  size_t body = 0;
  status = line_end < end ? parse_fields(line_end + 2, end, request, body) : 0;
  if (status != 0) return HttpParse::bad;
  size_t body_at = head + 4;
  if (size - body_at < body) return HttpParse::incomplete;
  status = parse_first_line(bytes, line_end, request);
  if (status != 0) return HttpParse::bad;
  request.body = {bytes + body_at, body};
  if (request.method == "POST" && body == 0 && size > body_at) {
    status = 411;
    return HttpParse::bad;
  }
  return HttpParse::complete;
}

bool decode_path(HttpRequest& request) {
  auto* bytes = const_cast<char*>(request.path.data());
  request.path = {bytes,
                  decode(bytes, bytes + request.path.size(), bytes, request.path.size(), false)};
  for (char c : request.path)
    if (static_cast<unsigned char>(c) < 0x20) return false;
  return true;
}

bool query_value(std::string_view query, std::string_view name, char* room, size_t room_bytes) {
  const char *at = query.data(), *end = at + query.size();
  while (at < end) {
    const char* next = at;
    while (next < end && *next != '&') ++next;
    const char* equals = at;
    while (equals < next && *equals != '=') ++equals;
    if (part(at, equals) == name) {
      const char* value = equals < next ? equals + 1 : next;
      room[decode(value, next, room, room_bytes - 1, true)] = 0;
      return true;
    }
    at = next + 1;
  }
  return false;
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 301:
      return "Moved Permanently";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 409:
      return "Conflict";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace assay::inproc
