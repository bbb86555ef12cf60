#include "inject/inproc/http/listen_address.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace assay::inproc {
namespace {

constexpr int kBacklog = 64;

struct Parsed {
  sockaddr_storage address{};
  socklen_t bytes = 0;
  bool loopback = false;
};

bool parse_port(const char* text, uint16_t& port) {
  char* end = nullptr;
  unsigned long value = std::strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || value > 65535) return false;
  port = static_cast<uint16_t>(value);
  return true;
}

bool parse_host(const char* host, uint16_t port, Parsed& out) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  bool any = host[0] == 0;
  if (std::strcmp(host, "localhost") == 0) host = "127.0.0.1";
  if (any || inet_pton(AF_INET, host, &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    out.loopback = ntohl(four.sin_addr.s_addr) >> 24 == 127;
    std::memcpy(&out.address, &four, sizeof four);
    out.bytes = sizeof four;
    return true;
  }
  if (inet_pton(AF_INET6, host, &six.sin6_addr) != 1) return false;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  out.loopback = IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
  std::memcpy(&out.address, &six, sizeof six);
  out.bytes = sizeof six;
  return true;
}

bool parse(const char* text, Parsed& out) {
  uint16_t port = 0;
  if (parse_port(text, port)) return parse_host("127.0.0.1", port, out);
  const char* colon = std::strrchr(text, ':');
  if (colon == nullptr || !parse_port(colon + 1, port)) return false;
  char host[64];
  size_t bytes = static_cast<size_t>(colon - text);
  if (bytes >= 2 && text[0] == '[' && text[bytes - 1] == ']') {
    ++text;
    bytes -= 2;
  }
  if (bytes >= sizeof host) return false;
  std::memcpy(host, text, bytes);
  host[bytes] = 0;
  return parse_host(host, port, out);
}

bool to_unix_address(const char* path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path[0] == 0 || std::strlen(path) >= sizeof address.sun_path) return false;
  std::strcpy(address.sun_path, path);
  return true;
}

const char* listen_unix(const char* path, Listener& listener, char* sentence, size_t room) {
  sockaddr_un address{};
  if (!to_unix_address(path, address))
    return "the path of the unix socket is empty or longer than 107 bytes";
  auto* bare = reinterpret_cast<sockaddr*>(&address);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int bound = bind(fd, bare, sizeof address);
  if (bound != 0 && errno == EADDRINUSE) {
    // If it was left by a process that has ended, no process accepts connections there, and it is
    // taken over.
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat about {};
    bool dead = connect(probe, bare, sizeof address) != 0 && errno == ECONNREFUSED &&
                stat(path, &about) == 0 && S_ISSOCK(about.st_mode);
    close(probe);
    if (dead && unlink(path) == 0) bound = bind(fd, bare, sizeof address);
  }
  if (fd < 0 || bound != 0 || chmod(path, 0600) != 0 || listen(fd, kBacklog) != 0) {
    snprintf(sentence, room, "cannot listen at unix:%s: %s", path, strerrordesc_np(errno));
    if (fd >= 0) close(fd);
    return sentence;
  }
  listener.fd = fd;
  listener.loopback = true;
  std::strcpy(listener.unix_path, path);
  return nullptr;
}

// nullptr: it is no unix socket's.
const char* unix_path_of(const char* address) {
  return std::strncmp(address, "unix:", 5) == 0 ? address + 5 : nullptr;
}

}  // namespace

int connect_at(const char* address) {
  Parsed parsed;
  if (const char* path = unix_path_of(address)) {
    sockaddr_un to{};
    if (!to_unix_address(path, to)) return -1;
    std::memcpy(&parsed.address, &to, sizeof to);
    parsed.bytes = sizeof to;
  } else if (!parse(address, parsed)) {
    return -1;
  }
  int fd = socket(parsed.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  bool begun = connect(fd, reinterpret_cast<sockaddr*>(&parsed.address), parsed.bytes) == 0 ||
               errno == EINPROGRESS;
  if (begun) return fd;
  close(fd);
  return -1;
}

const char* listen_at(const char* address, bool have_token, Listener& listener, char* sentence,
                      size_t room) {
  if (const char* path = unix_path_of(address)) return listen_unix(path, listener, sentence, room);
  Parsed parsed;
  if (!parse(address, parsed)) {
    snprintf(sentence, room,
             "%.80s is no address: give HOST:PORT with a numeric host, or unix:/PATH", address);
    return sentence;
  }
  if (!parsed.loopback && !have_token) {
    snprintf(sentence, room,
             "%.80s can be reached from other machines: give a token (ASSAY_TOKEN), or listen at "
             "127.0.0.1",
             address);
    return sentence;
  }
  int fd = socket(parsed.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int one = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  auto* bare = reinterpret_cast<sockaddr*>(&parsed.address);
  if (fd < 0 || bind(fd, bare, parsed.bytes) != 0 || listen(fd, kBacklog) != 0 ||
      getsockname(fd, bare, &parsed.bytes) != 0) {
    snprintf(sentence, room, "cannot listen at %.80s: %s", address, strerrordesc_np(errno));
    if (fd >= 0) close(fd);
    return sentence;
  }
  listener.fd = fd;
  listener.loopback = parsed.loopback;
  // The port is at the same place in both families.
  listener.port = ntohs(reinterpret_cast<sockaddr_in*>(&parsed.address)->sin_port);
  return nullptr;
}

}  // namespace assay::inproc
