// The connected unix sockets of a network namespace, each with the other end of its connection.
//
// In: a process, whose network namespace is meant; out: one UnixSocket per connected socket. A
// socket that accept() made has the name of its listener; the end that connected has none as a
// rule. Threads and failures: see sock_diag.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

struct UnixSocket {
  uint64_t inode = 0;
  uint64_t peer = 0;   // the other end's inode
  bool named = false;  // bound, or accepted by a bound listener
};

// pid 0: this process's own namespace.
Result<std::vector<UnixSocket>> read_unix_sockets(pid_t pid,
                                                  const std::string& proc_root = "/proc");
// Of one message of a dump; peer 0: it is not connected.
Result<UnixSocket> parse_unix_message(std::span<const uint8_t> payload);

}  // namespace assay::os
