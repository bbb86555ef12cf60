// Address: the peer of a connection, resolved once; and a check that it accepts connections.
//
// Blocking (getaddrinfo, connect): called before load starts, never by a worker.
#pragma once

#include <string>

#include <sys/socket.h>

#include "base/result.h"
#include "load/url.h"

namespace assay::load {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  std::string text() const;  // "127.0.0.1:8000"
};

// The first address of the host that accepts a connection; an Error that says why none does.
Result<Address> find_server(const Url& url, int64_t timeout_ns);

}  // namespace assay::load
