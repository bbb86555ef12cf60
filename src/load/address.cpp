#include "load/address.h"

#include <algorithm>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace assay::load {
namespace {

// 0, or the errno of the failed connection.
int try_connect(const Address& address, int64_t timeout_ns) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd.get(), POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1,
                   static_cast<int>(std::clamp<int64_t>(timeout_ns / kNsPerMs, 1, 60'000)));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

std::string Address::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(in->sin_port));
  }
  auto* in6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
  return fmt::format("[{}]:{}", host, ntohs(in6->sin6_port));
}

Result<Address> find_server(const Url& url, int64_t timeout_ns) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int failed = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &wanted, &found);
  if (failed != 0) {
    return fail("cannot find the host {}: {}", url.host, ::gai_strerror(failed));
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  int error = 0;
  std::string tried;
  for (addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Address address;
    if (entry->ai_addrlen > sizeof address.storage) continue;
    std::copy_n(reinterpret_cast<const char*>(entry->ai_addr), entry->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
    address.size = entry->ai_addrlen;
    int result = try_connect(address, timeout_ns);
    if (result == 0) return address;
    if (tried.empty()) error = result;
    tried += (tried.empty() ? "" : ", ") + address.text();
  }
  return std::unexpected(Error{fmt::format("cannot connect to {}: {}", tried, std::strerror(error)),
                               error == ECONNREFUSED
                                   ? fmt::format("start the server, or see who listens: ss -ltn "
                                                 "'sport = :{}'",
                                                 url.port)
                                   : "",
                               error});
}

}  // namespace assay::load
