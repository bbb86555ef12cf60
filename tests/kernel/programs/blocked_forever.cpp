// Threads that block once and stay blocked for the whole time, each in another call. They never
// switch while a capture attached later runs, so only a snapshot can account for them.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "truth.h"

namespace {

void block_in_futex() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) never.wait(lock);
}

void block_in_read() {
  int fds[2];
  char byte;
  if (pipe(fds) == 0) (void)!read(fds[0], &byte, 1);
}

void block_in_epoll() {
  epoll_event event;
  epoll_wait(epoll_create1(0), &event, 1, -1);
}

void block_in_accept() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0) {
    accept(fd, nullptr, nullptr);
  }
}

void block_in_nanosleep() {
  std::this_thread::sleep_for(std::chrono::hours(24));
}

void block_in_poll() {
  int fds[2];
  if (pipe(fds) != 0) return;
  pollfd wanted{fds[0], POLLIN, 0};
  poll(&wanted, 1, -1);
}

}  // namespace

int main(int argc, char** argv) {
  truth::Arguments arguments(argc, argv, {});
  truth::Deadline deadline(arguments);
  truth::Truth main_thread("");
  const std::vector<std::pair<std::string, void (*)()>> kinds{
      {"in-futex", block_in_futex},         {"in-read", block_in_read},
      {"in-epoll", block_in_epoll},         {"in-accept", block_in_accept},
      {"in-nanosleep", block_in_nanosleep}, {"in-poll", block_in_poll}};
  for (const auto& [name, block] : kinds) {
    std::thread([name = name, block = block] {
      truth::Truth self(name);
      self.wait(block);
    }).detach();
  }
  deadline.wait_for_end(main_thread);
  truth::print_truths();
  _exit(0);  // the threads cannot be joined: they are still blocked
}
