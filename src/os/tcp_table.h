// Listening TCP sockets of one network namespace, as /proc/net/tcp and /proc/net/tcp6 list them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace assay::os {

class ProcFs;

struct ListeningSocket {
  uint16_t port = 0;
  uint64_t inode = 0;  // what an fd link "socket:[inode]" names; unique across namespaces
  uid_t uid = 0;
};

// Rows of one table in state LISTEN; rows that are none are left out.
std::vector<ListeningSocket> parse_tcp_table(std::string_view text);

// Both tables below `directory` of /proc ("net" for this process's namespace, "7/net" for
// another's). Empty where they cannot be read.
std::vector<ListeningSocket> listening_sockets(const ProcFs& proc, const std::string& directory);

}  // namespace assay::os
