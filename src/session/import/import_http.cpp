#include "session/import/import_http.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay::session {
namespace {

constexpr std::string_view kScheme = "http://";

struct Url {
  std::string host, port = "80", path = "/";
};

Result<Url> parse_url(const std::string& text) {
  std::string_view rest = std::string_view(text).substr(kScheme.size());
  Url url;
  size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view place = rest.substr(0, slash);
  if (slash < rest.size()) url.path = rest.substr(slash, rest.find('#') - slash);
  size_t bracket = place.starts_with('[') ? place.find(']') : std::string_view::npos;
  size_t colon = place.find(':', bracket == place.npos ? 0 : bracket);
  url.host = place.substr(0, colon);
  if (bracket != place.npos) url.host = place.substr(1, bracket - 1);
  if (colon != place.npos) url.port = place.substr(colon + 1);
  auto bad = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (url.host.empty() || std::any_of(text.begin(), text.end(), bad)) {
    return fail("'{}' is no http URL", text);
  }
  return url;
}

// Go answers after the seconds it was asked to sample for.
int seconds_asked(const std::string& path) {
  size_t at = path.find("seconds=");
  int seconds = 0;
  if (at != path.npos) {
    std::from_chars(path.data() + at + 8, path.data() + path.size(), seconds);
  }
  return std::clamp(seconds, 0, 3600);
}

Result<UniqueFd> connect_to(const Url& url, int patience_seconds) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int code = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
  if (code != 0) return fail("cannot find {}: {}", url.host, gai_strerror(code));
  UniqueFd fd;
  int last = 0;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    fd.reset(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    timeval patience{patience_seconds, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd.valid() && ::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) break;
    last = errno;
    fd.reset();
  }
  freeaddrinfo(found);
  if (fd.valid()) return fd;
  errno = last;
  return fail_errno("cannot connect to {}:{}", url.host, url.port);
}

Result<std::string> receive(int fd, size_t most_bytes, const std::string& url) {
  std::string answer;
  char buffer[1 << 16];
  while (true) {
    ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("no answer from {}", url);
    if (got == 0) return answer;
    answer.append(buffer, static_cast<size_t>(got));
    if (answer.size() > most_bytes) return fail("{} sends more than {} bytes", url, most_bytes);
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

Result<std::string> joined_chunks(std::string_view body, const std::string& url) {
  std::string whole;
  while (true) {
    size_t size = 0;
    size_t line = body.find("\r\n");
    if (line == body.npos) return fail("{} sends a broken answer", url);
    auto [end, status] = std::from_chars(body.data(), body.data() + line, size, 16);
    if (status != std::errc()) return fail("{} sends a broken answer", url);
    body.remove_prefix(line + 2);
    if (size == 0) return whole;
    if (size > body.size() || body.size() - size < 2) return fail("{} sends a broken answer", url);
    whole += body.substr(0, size);
    body.remove_prefix(size + 2);
  }
}

}  // namespace

bool is_http_url(const std::string& text) {
  return text.starts_with(kScheme);
}

Result<std::string> http_get(const std::string& url, size_t most_bytes, int patience_seconds) {
  auto parsed = parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  auto fd = connect_to(*parsed, patience_seconds + seconds_asked(parsed->path));
  if (!fd) return std::unexpected(fd.error());
  std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: assay\r\nAccept: */*\r\n"
      "Connection: close\r\n\r\n",
      parsed->path, parsed->host, parsed->port);
  for (std::string_view rest = request; !rest.empty();) {
    ssize_t sent = ::send(fd->get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0) return fail_errno("cannot ask {}", url);
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  auto answer = receive(fd->get(), most_bytes, url);
  if (!answer) return std::unexpected(answer.error());
  size_t body = answer->find("\r\n\r\n");
  if (!answer->starts_with("HTTP/1.") || body == answer->npos) {
    return fail("{} does not answer in HTTP", url);
  }
  std::string head = lower(std::string_view(*answer).substr(0, body));
  std::string status = answer->substr(9, 3);
  if (status != "200") {
    return fail("{} answers {}", url, answer->substr(9, answer->find("\r\n") - 9));
  }
  if (head.find("transfer-encoding: chunked") != head.npos) {
    return joined_chunks(std::string_view(*answer).substr(body + 4), url);
  }
  size_t length_at = head.find("content-length: ");
  if (length_at != head.npos) {
    size_t length = 0;
    std::from_chars(head.data() + length_at + 16, head.data() + head.size(), length);
    if (answer->size() - body - 4 < length) return fail("{} ends its answer early", url);
  }
  return answer->substr(body + 4);
}

}  // namespace assay::session
