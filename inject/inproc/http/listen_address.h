// Where the server listens: "127.0.0.1:8070", "[::1]:8070", "localhost:8070", "8070" (loopback),
// "unix:/path", and, with a token only, any other address ("0.0.0.0:8070", ":8070").
#pragma once

#include <cstddef>

namespace assay::inproc {

struct Listener {
  int fd = -1;
  int port = 0;           // 0: a unix socket
  bool loopback = false;  // or a unix socket: reachable from this machine only
  char unix_path[108] = "";
};

// nullptr: `listener` listens. Else a sentence; nothing is left open.
const char* listen_at(const char* address, bool have_token, Listener& listener, char* sentence,
                      size_t room);

// A non-blocking connection to the process that listens there; -1: none.
int connect_at(const char* address);

}  // namespace assay::inproc
