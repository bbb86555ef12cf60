#include "inject/inproc/http/http_server.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inject/inproc/http/access.h"
#include "inject/inproc/locks/futex_lock.h"
#include "inject/inproc/http/listen_address.h"
#include "inject/inproc/cpu/own_threads.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {
namespace {

// The host's exit waits at most this long for unfinished answers.
constexpr int kMaxStopMs = 1000;

struct Connection {
  int fd = -1;
  int64_t deadline_ns = 0;
  ByteBuffer received;
};

// A worker sleeps on `turn` until it has work; odd: busy.
struct Worker {
  std::atomic<uint32_t> turn;
  std::atomic<bool> started;
  Connection work;
};

FutexLock server_lock;
Listener listener;       // guarded by server_lock while starting and stopping
AccessRule access_rule;  // likewise
HttpHandler handle = nullptr;
std::atomic<bool> running, stopping;
std::atomic<int> active_threads;  // the reader, and workers that answer
int stop_event = -1;
Worker workers[kMaxWorkers];
Connection connections[kMaxConnections];  // the reader's own

void send_all(int fd, std::string_view bytes, int64_t deadline_ns) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return;
    int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    pollfd wanted{fd, POLLOUT, 0};
    if (left_ms <= 0 || poll(&wanted, 1, static_cast<int>(left_ms)) <= 0) return;
  }
}

void send_answer(int fd, const HttpAnswer& answer, bool without_body) {
  ByteBuffer head;
  head.print("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", answer.status,
             reason_of(answer.status), answer.content_type, answer.body.size());
  head.append(
      "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n");
  if (answer.file_name[0] != 0)
    head.print("Content-Disposition: attachment; filename=\"%s\"\r\n", answer.file_name);
  if (answer.location.size() > 0) {
    head.append("Location: ");
    head.append(answer.location.view());
    head.append("\r\n");
  }
  if (answer.pprof_error) head.append("X-Go-Pprof: 1\r\n");
  if (answer.status == 401) head.append("WWW-Authenticate: Bearer\r\n");
  if (answer.status == 405) head.append("Allow: GET, HEAD, POST\r\n");
  if (answer.status == 503) head.append("Retry-After: 1\r\n");
  head.append("\r\n");
  int64_t deadline_ns = monotonic_ns() + kAnswerMs * 1'000'000;
  send_all(fd, head.view(), deadline_ns);
  if (!without_body) send_all(fd, answer.body.view(), deadline_ns);
}

// Ends a connection so that the client still gets the answer: a close with unread bytes would reset
// it.
void finish_connection(int fd) {
  shutdown(fd, SHUT_WR);
  char rest[4096];
  int64_t deadline_ns = monotonic_ns() + 200'000'000;
  for (int i = 0; i < 64; ++i) {
    int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    pollfd wanted{fd, POLLIN, 0};
    if (left_ms <= 0 || poll(&wanted, 1, static_cast<int>(left_ms)) <= 0) break;
    if (recv(fd, rest, sizeof rest, MSG_DONTWAIT) <= 0) break;
  }
  close(fd);
}

void refuse(int fd, int status, const char* sentence) {
  HttpAnswer answer;
  answer.status = status;
  answer.body.print("%s\n", sentence);
  send_answer(fd, answer, false);
  shutdown(fd, SHUT_WR);
  char rest[4096];
  while (recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) {
  }
  close(fd);
}

void answer_one(Connection& work) {
  HttpRequest request;
  int status = 0;
  parse_request(work.received.data(), work.received.size(), request, status);
  HttpExchange exchange(request, work.fd);
  const char* problem = "the path has control characters";
  exchange.answer.status = decode_path(request) ? check_access(access_rule, request, problem) : 400;
  if (exchange.answer.status == 200)
    handle(exchange);
  else
    exchange.answer.body.print("%s\n", problem);
  if (exchange.answer.body.failed()) {
    HttpAnswer none;
    none.status = 500;
    none.pprof_error = true;
    none.body.append("no memory for the answer\n");
    send_answer(work.fd, none, request.is_head());
  } else {
    send_answer(work.fd, exchange.answer, request.is_head());
  }
  finish_connection(work.fd);
  work.fd = -1;
  ByteBuffer none;
  work.received.swap(none);
}

void run_worker(void* given) {
  auto& worker = *static_cast<Worker*>(given);
  for (;;) {
    uint32_t turn = worker.turn.load(std::memory_order_acquire);
    if (turn % 2 == 0) {
      futex_wait(worker.turn, turn, nullptr);
      continue;
    }
    answer_one(worker.work);
    active_threads.fetch_sub(1);
    worker.turn.fetch_add(1, std::memory_order_release);
  }
}

// False: all of them are busy.
bool hand_over(Connection& connection) {
  for (Worker& worker : workers) {
    if (worker.turn.load(std::memory_order_acquire) % 2 == 1) continue;
    if (!worker.started.load()) {
      if (!start_own_thread("assay-http", run_worker, &worker)) return false;
      worker.started.store(true);
    }
    worker.work.fd = connection.fd;
    worker.work.received.swap(connection.received);
    connection.fd = -1;
    active_threads.fetch_add(1);
    worker.turn.fetch_add(1, std::memory_order_release);
    futex_wake(worker.turn, 1);
    return true;
  }
  return false;
}

void drop(Connection& connection, int status, const char* sentence) {
  if (status != 0)
    refuse(connection.fd, status, sentence);
  else
    close(connection.fd);
  connection.fd = -1;
  ByteBuffer none;
  connection.received.swap(none);
}

void receive(Connection& connection) {
  constexpr size_t kPiece = 16 << 10;
  if (!connection.received.reserve(kPiece)) return drop(connection, 503, "no memory");
  ssize_t got = recv(connection.fd, connection.received.end(), kPiece, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(connection, 0, "");
  connection.received.grow(static_cast<size_t>(got));
  HttpRequest request;
  int status = 0;
  HttpParse parse =
      parse_request(connection.received.data(), connection.received.size(), request, status);
  if (parse == HttpParse::bad) return drop(connection, status, reason_of(status));
  if (parse == HttpParse::incomplete) return;
  if (request.method != "GET" && request.method != "POST" && request.method != "HEAD")
    return drop(connection, 405, "GET, HEAD and POST are understood here");
  if (!hand_over(connection)) drop(connection, 503, "all of the profiler's threads are busy");
}

// A host without free descriptors cannot accept, and the listener stays readable: avoid a busy
// loop.
constexpr int kPauseMs = 100;

void accept_all(int64_t now_ns) {
  for (;;) {
    int fd = accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) poll(nullptr, 0, kPauseMs);
    if (fd < 0) return;
    Connection* place = nullptr;
    for (Connection& connection : connections)
      if (connection.fd < 0) place = &connection;
    if (place == nullptr) {
      refuse(fd, 503, "too many connections");
      continue;
    }
    place->fd = fd;
    place->deadline_ns = now_ns + kRequestMs * 1'000'000;
  }
}

void run_reader(void*) {
  while (!stopping.load()) {
    pollfd wanted[kMaxConnections + 2];
    Connection* owners[kMaxConnections];
    int count = 0, timeout_ms = -1;
    int64_t now_ns = monotonic_ns();
    for (Connection& connection : connections) {
      if (connection.fd < 0) continue;
      if (connection.deadline_ns <= now_ns) {
        drop(connection, 408, "the request did not arrive in time");
        continue;
      }
      int left_ms = static_cast<int>((connection.deadline_ns - now_ns) / 1'000'000) + 1;
      if (timeout_ms < 0 || left_ms < timeout_ms) timeout_ms = left_ms;
      owners[count] = &connection;
      wanted[count++] = {connection.fd, POLLIN, 0};
    }
    wanted[count] = {stop_event, POLLIN, 0};
    wanted[count + 1] = {listener.fd, POLLIN, 0};
    if (poll(wanted, static_cast<nfds_t>(count) + 2, timeout_ms) < 0) continue;
    for (int i = 0; i < count; ++i)
      if (wanted[i].revents != 0) receive(*owners[i]);
    if (wanted[count + 1].revents != 0) accept_all(monotonic_ns());
  }
  for (Connection& connection : connections)
    if (connection.fd >= 0) drop(connection, 0, "");
  active_threads.fetch_sub(1);
}

}  // namespace

bool HttpExchange::sleep_ms(int64_t ms) {
  int64_t end_ns = monotonic_ns() + ms * 1'000'000;
  for (;;) {
    int64_t left_ms = (end_ns - monotonic_ns() + 999'999) / 1'000'000;
    if (left_ms <= 0) return true;
    pollfd wanted[2] = {{fd_, POLLRDHUP, 0}, {stop_event, POLLIN, 0}};
    int ready = poll(wanted, 2, static_cast<int>(left_ms < 60'000 ? left_ms : 60'000));
    if (ready > 0) return false;
  }
}

int start_http_server(const char* address, const char* token, HttpHandler handler, char* sentence,
                      size_t room) {
  Hold hold(server_lock);
  if (running.load()) {
    snprintf(sentence, room, "it is already being served at port %d", listener.port);
    return -1;
  }
  if (!set_token(access_rule, token, sentence, room)) return -1;
  Listener made;
  const char* problem = listen_at(address, access_rule.token_bytes > 0, made, sentence, room);
  if (problem != nullptr) {
    if (problem != sentence) snprintf(sentence, room, "%s", problem);
    return -1;
  }
  listener = made;
  access_rule.loopback = made.loopback;
  handle = handler;
  stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  stopping = false;
  active_threads = 1;
  if (stop_event < 0 || !start_own_thread("assay-http", run_reader, nullptr)) {
    snprintf(sentence, room, "no thread or file descriptor is left for the server");
    close(made.fd);
    if (stop_event >= 0) close(stop_event);
    stop_event = -1;
    return -1;
  }
  running = true;
  return listener.port;
}

void stop_http_server() {
  Hold hold(server_lock);
  if (!running.load()) return;
  stopping = true;
  uint64_t one = 1;
  if (write(stop_event, &one, sizeof one) < 0) return;
  timespec pause{0, 1'000'000};
  for (int i = 0; i < kMaxStopMs && active_threads.load() > 0; ++i) nanosleep(&pause, nullptr);
  close(listener.fd);
  if (listener.unix_path[0] != 0) unlink(listener.unix_path);
  // A thread that is still busy may use it: then it stays open.
  if (active_threads.load() == 0) close(stop_event);
  stop_event = -1;
  running = false;
}

bool http_server_runs() {
  return running.load();
}

void forget_http_server() {
  server_lock.reset();
  if (!running.load()) return;
  close(listener.fd);
  close(stop_event);
  for (Connection& connection : connections) {
    if (connection.fd >= 0) close(connection.fd);
    connection.fd = -1;
  }
  for (Worker& worker : workers) {
    if (worker.work.fd >= 0) close(worker.work.fd);
    worker.work.fd = -1;
    worker.started = false;
    worker.turn = 0;
  }
  running = false;
}

}  // namespace assay::inproc
