#include "load/url.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace assay::load {
namespace {

struct Scheme {
  std::string_view prefix;
  bool tls;
  bool grpc;
  uint16_t port;  // 0: must be given
};

constexpr std::array kSchemes{
    Scheme{"http://", false, false, 80}, Scheme{"https://", true, false, 443},
    Scheme{"grpc://", false, true, 0}, Scheme{"grpcs://", true, true, 443}};

const Scheme* scheme_of(std::string_view text) {
  for (const Scheme& scheme : kSchemes) {
    if (text.starts_with(scheme.prefix)) return &scheme;
  }
  return nullptr;
}

// Characters that would end a request line or a header early, or that no URL may hold.
bool is_forbidden(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte == 0x7f;
}

Result<uint16_t> parse_port(std::string_view text, std::string_view url) {
  unsigned port = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), port);
  bool whole = status == std::errc() && end == text.data() + text.size();
  if (!whole || port == 0 || port > 65535) return fail("'{}' is not a port (in {})", text, url);
  return static_cast<uint16_t>(port);
}

// Fills host and port from "host", "host:port", "[::1]:port".
Result<void> parse_authority(std::string_view authority, const Scheme& scheme, std::string_view all,
                             Url& url) {
  if (authority.find('@') != authority.npos) {
    return fail_with_remedy(fmt::format("{} holds a user name; Assay does not send those", all),
                            "-H 'Authorization: Basic …'");
  }
  std::string_view host = authority, port;
  if (authority.starts_with('[')) {
    size_t close = authority.find(']');
    if (close == authority.npos) return fail("'[' without ']' in {}", all);
    host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (!port.empty() && port.front() != ':') return fail("'{}' after ']' in {}", port, all);
  } else if (size_t colon = authority.find(':'); colon != authority.npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
    if (port.find(':', 1) != port.npos) {
      return fail_with_remedy(fmt::format("more than one ':' in the host of {}", all),
                              "write an IPv6 address in brackets: http://[::1]:8000/");
    }
  }
  if (host.empty()) return fail("there is no host in {}", all);
  url.host = host;
  url.port = scheme.port;
  if (port.empty() && scheme.port == 0) return fail("there is no port in {}", all);
  if (!port.empty()) {
    auto number = parse_port(port.substr(1), all);
    if (!number) return std::unexpected(number.error());
    url.port = *number;
  }
  return {};
}

// "/package.Service/Method": two names, neither empty.
bool is_grpc_method(std::string_view path) {
  size_t second = path.find('/', 1);
  return path.starts_with('/') && second != path.npos && second > 1 && second + 1 < path.size() &&
         path.find('/', second + 1) == path.npos && path.find('?') == path.npos;
}

}  // namespace

bool looks_like_url(std::string_view text) {
  return scheme_of(text) != nullptr;
}

std::string Url::text() const {
  return fmt::format("{}{}://{}{}", grpc ? "grpc" : "http", tls ? "s" : "", authority, path);
}

Result<Url> parse_url(std::string_view text) {
  const Scheme* scheme = scheme_of(text);
  if (scheme == nullptr) {
    return fail_with_remedy(fmt::format("'{}' is not a URL that load can go to", text),
                            "http://…, https://…, grpc://HOST:PORT/package.Service/Method or "
                            "grpcs://…");
  }
  if (std::any_of(text.begin(), text.end(), is_forbidden)) {
    return fail("there is a blank or a control character in '{}': write it as %20 and the like",
                text);
  }
  Url url;
  url.tls = scheme->tls;
  url.grpc = scheme->grpc;
  std::string_view rest = text.substr(scheme->prefix.size());
  rest = rest.substr(0, rest.find('#'));
  size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  if (auto parsed = parse_authority(authority, *scheme, text, url); !parsed) {
    return std::unexpected(parsed.error());
  }
  url.authority = authority;
  url.path = rest.substr(authority_end);
  if (!url.path.starts_with('/')) url.path.insert(0, "/");
  if (url.grpc && !is_grpc_method(url.path)) {
    return fail_with_remedy(fmt::format("{} does not name a gRPC method", text),
                            "grpc://HOST:PORT/package.Service/Method");
  }
  return url;
}

}  // namespace assay::load
