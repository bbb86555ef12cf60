// The parts of a small host, each a program of its own: a server, its helper, its load generator
// and a stranger. Usage: prog_neighbours ROLE [PORT]
//   helper           listens, prints its port, and computes all the time
//   server PORT      connects to its helper, listens, prints its port, and computes a little
//   generator PORT   connects to the server, and computes all the time
//   stranger         computes all the time
// All but the stranger keep their connections open. Each is named after its role.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "truth.h"

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int listen_and_tell() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) fail("bind");
  if (::listen(fd, 8) != 0) fail("listen");
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

void connect_to(const char* port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(std::atoi(port));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
}

}  // namespace

int main(int argc, char** argv) {
  std::string role = argc > 1 ? argv[1] : "";
  const char* port = argc > 2 ? argv[2] : "0";
  ::prctl(PR_SET_NAME, ("t-" + role).c_str());
  truth::Deadline deadline(60);
  if (role == "server" || role == "generator") connect_to(port);
  if (role == "server" || role == "helper") {
    int listener = listen_and_tell();
    if (::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) < 0) fail("accept");
  }
  while (!deadline.passed_or_signalled()) {
    truth::burn_cpu_ns(2'000'000);
    if (role == "server") ::usleep(20'000);
  }
}
