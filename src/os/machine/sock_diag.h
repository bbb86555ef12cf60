// The kernel's sock_diag in a network namespace: how to open it and how to read its answers.
//
// In: a process, whose network namespace is meant; out: the payload of each message of a dump. A
// netlink socket belongs to the namespace it was made in, so one that was opened once in the
// target's namespace (by a thread that enters it and ends) serves every later dump from any thread.
// Threads: one descriptor is used by one thread at a time. Failures: no permission to enter the
// namespace or no sock_diag is an Error. Replies are foreign bytes and are bounds-checked. Follows
// sock_diag(7) and netlink(7).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

// Called with the payload of each message, or with the value of each attribute.
using DiagVisitor = std::function<Result<void>(std::span<const uint8_t> payload)>;
using AttributeVisitor = std::function<void(uint16_t type, std::span<const uint8_t> value)>;

// pid 0: this process's own namespace.
Result<UniqueFd> open_sock_diag(pid_t pid, const std::string& proc_root = "/proc");

// Sends a request (header included) and reads the answers up to the end of the dump.
Result<void> dump_sock_diag(int fd, std::span<const uint8_t> request, uint32_t sequence,
                            const DiagVisitor& visit);

// Reads one datagram of messages; true when it held the end of the dump. Messages with another
// sequence number are left out. What is cut off or inconsistent is an Error.
Result<bool> visit_diag_messages(std::span<const uint8_t> bytes, uint32_t sequence,
                                 const DiagVisitor& visit);
Result<void> visit_attributes(std::span<const uint8_t> bytes, const AttributeVisitor& visit);

template <class T>
T read_as(std::span<const uint8_t> bytes) {  // zero where the bytes end early
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

constexpr size_t align4(size_t size) {
  return (size + 3) & ~size_t{3};
}

}  // namespace assay::os
