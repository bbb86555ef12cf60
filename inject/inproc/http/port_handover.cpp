#include "inject/inproc/http/port_handover.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/inproc/http/endpoints.h"
#include "inject/inproc/http/listen_address.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/cpu/sleeping_thread.h"

namespace assay::inproc {
namespace {

constexpr int kAskMs = 500;

Occupation occupation_of(int tid) {
  SleepingThread thread;
  if (!find_sleeping_thread(tid, thread)) return Occupation::works;
  switch (thread.call) {
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return Occupation::waits;
    case SYS_read:
    case SYS_splice:
      return thread.first_argument == STDIN_FILENO ? Occupation::reads : Occupation::works;
#ifdef SYS_pause
    case SYS_pause:
#endif
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return Occupation::sleeps;
    default:
      return Occupation::works;
  }
}

bool has_children() {
  siginfo_t none{};
  return waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool is_ready(int fd, short events) {
  pollfd wanted{fd, events, 0};
  return poll(&wanted, 1, kAskMs) > 0;
}

}  // namespace

Occupation host_occupation() {
  struct Count {
    int threads = 0, waiting = 0;
    Occupation last = Occupation::works;
  } count;
  bool listed = for_each_thread(
      [](int tid, void* given) {
        if (is_own_thread(tid)) return;
        auto& counted = *static_cast<Count*>(given);
        ++counted.threads;
        counted.last = occupation_of(tid);
        counted.waiting += counted.last == Occupation::waits;
      },
      &count);
  if (!listed || count.threads == 0) return Occupation::works;
  if (count.waiting == count.threads) return Occupation::waits;
  return count.threads == 1 && !has_children() ? count.last : Occupation::works;
}

void answer_handover(HttpExchange& exchange, const char* secret, void (*give_up)()) {
  if (secret[0] == 0 || exchange.request.method != "POST" || exchange.request.body != secret)
    return answer_error(exchange, 404, "404 page not found");
  int64_t asker = 0;
  query_number(exchange.request, "occupation", asker);
  Occupation own = host_occupation();
  if (own != Occupation::waits && static_cast<int64_t>(own) >= asker)
    return answer_error(exchange, 409, "this program has work of its own");
  exchange.answer.body.append("the address is free in a moment\n");
  give_up();
}

bool ask_for_port(const char* address, const char* secret, const char* token,
                  Occupation occupation) {
  ByteBuffer request;
  request.print("POST %s?occupation=%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n",
                kHandoverPath, static_cast<int>(occupation), std::strlen(secret));
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
