#include "inject/inproc/port_handover.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/inproc/endpoints.h"
#include "inject/inproc/listen_address.h"
#include "inject/inproc/own_threads.h"
#include "inject/inproc/sleeping_thread.h"

namespace assay::inproc {
namespace {

constexpr int kAskMs = 500;

bool waits_for_a_child(int tid) {
  SleepingThread thread;
  if (!find_sleeping_thread(tid, thread)) return false;
  switch (thread.call) {
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return true;
    default:
      return false;
  }
}

bool is_ready(int fd, short events) {
  pollfd wanted{fd, events, 0};
  return poll(&wanted, 1, kAskMs) > 0;
}

}  // namespace

bool host_only_waits() {
  struct Count {
    int threads = 0, waiting = 0;
  } count;
  bool listed = for_each_thread(
      [](int tid, void* given) {
        if (is_own_thread(tid)) return;
        auto& counted = *static_cast<Count*>(given);
        ++counted.threads;
        counted.waiting += waits_for_a_child(tid);
      },
      &count);
  return listed && count.threads > 0 && count.waiting == count.threads;
}

void answer_handover(HttpExchange& exchange, const char* secret, void (*give_up)()) {
  if (secret[0] == 0 || exchange.request.method != "POST" || exchange.request.body != secret)
    return answer_error(exchange, 404, "404 page not found");
  if (!host_only_waits()) return answer_error(exchange, 409, "this program has work of its own");
  exchange.answer.body.append("the address is free in a moment\n");
  give_up();
}

bool ask_for_port(const char* address, const char* secret, const char* token) {
  ByteBuffer request;
  request.print("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n", kHandoverPath,
                std::strlen(secret));
  if (token != nullptr && token[0] != 0) request.print("Authorization: Bearer %s\r\n", token);
  request.print("\r\n%s", secret);
  int fd = connect_at(address);
  if (fd < 0) return false;
  char answer[64] = "";
  bool sent = is_ready(fd, POLLOUT) && send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
                                           static_cast<ssize_t>(request.size());
  bool answered = sent && is_ready(fd, POLLIN) && recv(fd, answer, sizeof answer - 1, 0) > 0;
  close(fd);
  return answered && std::strncmp(answer, "HTTP/1.1 200", 12) == 0;
}

}  // namespace assay::inproc
