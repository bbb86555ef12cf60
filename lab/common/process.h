// What every lab server does as a process: its socket, its signals, its end, its children.
//
// Loopback only. A server blocks SIGINT and SIGTERM before it starts a thread, prints one line
// "listening 127.0.0.1:PORT" when it is ready, and ends on either signal, exit 0. Children of a
// server end with it, even after kill -9 (die_with_parent). Failures: a sentence on stderr and exit
// status 1.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

namespace lab {

[[noreturn]] void die(const std::string& what);         // with the meaning of errno
[[noreturn]] void die_saying(const std::string& what);  // without

// Blocks SIGINT, SIGTERM and SIGCHLD in this thread and those it starts; SIGPIPE is ignored.
sigset_t block_signals();

// A listening socket, not blocking, closed on exec; port 0 becomes the port that was free.
int listen_on_loopback(int& port);
void announce(int port);

void name_thread(const std::string& name);
void set_nodelay(int fd);

// In a new child: kill -9 of `parent` kills it, too. False: the parent has already ended.
bool die_with_parent(pid_t parent);

// Runs this very program again with other arguments. inherited_fd stays open in it, or -1.
pid_t start_self(const std::vector<std::string>& arguments, int inherited_fd);

// A file without a name, so it is deleted with the process; its blocks are on the disk of
// `directory`.
int open_nameless_file(const std::string& directory);

}  // namespace lab
