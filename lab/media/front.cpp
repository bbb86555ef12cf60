#include "lab/media/front.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/http.h"
#include "lab/common/process.h"
#include "lab/media/chat.h"

namespace lab::media {

using Clock = std::chrono::steady_clock;

// One thread, its epoll, its connections. A request's id is the loop's number in the top byte and a
// connection's serial number below, so that an answer that comes too late finds no connection.
class IoLoop {
 public:
  IoLoop(const Options& options, DecodeScheduler& scheduler, RequestLog& log, uint64_t number)
      : scheduler_(scheduler),
        log_(log),
        number_(number),
        authorization_("Bearer " + options.text("token")),
        timeout_(options.number("timeout-ms")) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_ < 0 || wake_ < 0) die("epoll");
    watch(wake_, kWakeSerial, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = std::thread([this] { run(); });
  }
  ~IoLoop() {
    stopping_ = true;
    wake();
    thread_.join();
    for (auto& [serial, connection] : connections_) close(connection.fd);
    for (int fd : adopted_) close(fd);
    close(wake_);
    close(epoll_);
  }
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  void adopt(int fd) {
    {
      std::lock_guard lock(mutex_);
      adopted_.push_back(fd);
    }
    wake();
  }
  void deliver(const Response& piece) {
    bool first;
    {
      std::lock_guard lock(mutex_);
      first = pieces_.empty();
      pieces_.push_back(piece);
    }
    if (first) wake();
  }
  uint64_t served() const { return served_; }

 private:
  static constexpr uint64_t kWakeSerial = 0;

  struct Connection {
    int fd = -1;
    std::string in, out, text;
    uint32_t tokens = 0;
    uint64_t request = 0;  // the one that a worker has; 0: none
    bool streamed = false, closing = false, wants_write = false;
    Clock::time_point deadline;
  };

  void wake() {
    uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0 && errno != EAGAIN) die("eventfd");
  }
  void watch(int fd, uint64_t serial, uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = serial;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) die("epoll_ctl");
  }

  void run() {
    name_thread("http-io-" + std::to_string(number_));
    epoll_event events[64];
    while (!stopping_) {
      int count = epoll_wait(epoll_, events, 64, 100);
      if (count < 0 && errno != EINTR) die("epoll_wait");
      for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 == kWakeSerial) {
          take_messages();
        } else {
          serve(events[i].data.u64, events[i].events);
        }
      }
      if (Clock::now() >= next_check_) answer_overdue();
    }
  }

  void take_messages() {
    uint64_t ignored;
    if (read(wake_, &ignored, sizeof ignored) < 0 && errno != EAGAIN) die("eventfd");
    std::vector<int> fds;
    std::vector<Response> pieces;
    {
      std::lock_guard lock(mutex_);
      fds.swap(adopted_);
      pieces.swap(pieces_);
    }
    for (int fd : fds) {
      uint64_t serial = ++last_serial_;
      connections_[serial].fd = fd;
      watch(fd, serial, EPOLLIN, EPOLL_CTL_ADD);
    }
    for (const Response& piece : pieces) take_piece(piece);
  }

  // A piece of an answer; late ones, whose request has timed out, are dropped.
  void take_piece(const Response& piece) {
    uint64_t serial = requests_.contains(piece.id) ? requests_[piece.id] : 0;
    auto found = connections_.find(serial);
    if (found == connections_.end() || found->second.request != piece.id) {
      if (piece.last) requests_.erase(piece.id);
      return;
    }
    Connection& connection = found->second;
    std::string_view text(piece.text, std::min<size_t>(piece.text_bytes, kTextBytes));
    if (connection.streamed) {
      connection.out += http::make_chunk(chunk_event(text, piece.last));
      if (piece.last) connection.out += http::make_chunk("");
    } else {
      connection.text += text;
      connection.tokens += piece.tokens;
      if (piece.last) {
        std::string body = completion_json(connection.text, connection.tokens);
        connection.out += http::make_response(200, "application/json", body);
      }
    }
    if (piece.last) finish_request(connection);
    if (!send_pending(serial, connection))
      drop(serial);
    else if (piece.last)
      read_next(serial);
  }

  void finish_request(Connection& connection) {
    requests_.erase(connection.request);
    connection.request = 0;
    connection.text.clear();
    connection.tokens = 0;
    ++served_;
  }

  void serve(uint64_t serial, uint32_t events) {
    auto found = connections_.find(serial);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (events & EPOLLIN) {
      char bytes[16384];
      ssize_t got = recv(connection.fd, bytes, sizeof bytes, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return drop(serial);
      if (got > 0) connection.in.append(bytes, static_cast<size_t>(got));
      if (connection.in.size() > 4 * http::kMaxBodyBytes) return drop(serial);
    } else if (events & (EPOLLERR | EPOLLHUP)) {
      return drop(serial);
    }
    read_next(serial);
  }

  // Takes requests from the connection until one is with a worker.
  void read_next(uint64_t serial) {
    Connection& connection = connections_.at(serial);
    http::Request request;
    while (connection.request == 0 && !connection.closing) {
      http::Parse parse = http::take_request(connection.in, request);
      if (parse == http::Parse::incomplete) break;
      if (parse == http::Parse::bad) {
        connection.out += http::make_response(400, "application/json", error_json("not HTTP/1.1"));
        connection.closing = true;
        break;
      }
      connection.closing = !request.keep_alive;
      answer(serial, connection, request);
    }
    if (!send_pending(serial, connection)) drop(serial);
  }

  void answer(uint64_t serial, Connection& connection, const http::Request& request) {
    auto say = [&](int status, const std::string& json) {
      connection.out += http::make_response(status, "application/json", json);
    };
    if (request.path == "/tt-liveness") {
      bool ready = scheduler_.all_ready();
      return say(200, std::string(R"({"status":"alive","model_ready":)") +
                          (ready ? "true" : "false") + "}");
    }
    if (request.path != "/v1/chat/completions") return say(404, error_json("no such path"));
    if (request.authorization != authorization_) return say(401, error_json("wrong token"));
    if (request.method != "POST") return say(400, error_json("POST it"));
    ChatRequest chat = parse_chat(request.body);
    if (!chat.error.empty()) return say(400, error_json(chat.error));
    log_.request("POST /v1/chat/completions " + std::to_string(chat.max_tokens) + " tokens\n");
    submit(serial, connection, chat);
  }

  void submit(uint64_t serial, Connection& connection, const ChatRequest& chat) {
    Request request;
    request.id = number_ << 56 | ++last_request_;
    request.max_tokens = chat.max_tokens;
    request.streamed = chat.streamed;
    connection.request = request.id;
    connection.streamed = chat.streamed;
    connection.deadline = Clock::now() + timeout_;
    requests_[request.id] = serial;
    if (scheduler_.submit(request, chat.prompt)) {
      if (chat.streamed) connection.out += http::make_chunked_head("text/event-stream");
      return;
    }
    requests_.erase(request.id);
    connection.request = 0;
    connection.out += http::make_response(503, "application/json", error_json("no worker is free"));
  }

  void answer_overdue() {
    Clock::time_point now = Clock::now();
    next_check_ = now + std::chrono::milliseconds(50);
    std::vector<uint64_t> overdue;
    for (auto& [serial, connection] : connections_) {
      if (connection.request != 0 && now >= connection.deadline) overdue.push_back(serial);
    }
    for (uint64_t serial : overdue) {
      Connection& connection = connections_.at(serial);
      requests_.erase(connection.request);
      connection.request = 0;
      connection.text.clear();
      connection.tokens = 0;
      // In the middle of a stream the only way to report it is to close.
      if (connection.streamed) {
        drop(serial);
        continue;
      }
      connection.out +=
          http::make_response(504, "application/json", error_json("the worker is silent"));
      read_next(serial);
    }
  }

  bool send_pending(uint64_t serial, Connection& connection) {
    if (!connection.out.empty()) {
      ssize_t sent =
          send(connection.fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) connection.out.erase(0, static_cast<size_t>(sent));
    }
    bool pending = !connection.out.empty();
    if (pending != connection.wants_write) {
      watch(connection.fd, serial, pending ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
      connection.wants_write = pending;
    }
    return pending || connection.request != 0 || !connection.closing;
  }

  void drop(uint64_t serial) {
    auto found = connections_.find(serial);
    if (found == connections_.end()) return;
    requests_.erase(found->second.request);
    close(found->second.fd);
    connections_.erase(found);
  }

  DecodeScheduler& scheduler_;
  RequestLog& log_;
  const uint64_t number_;
  const std::string authorization_;
  const std::chrono::milliseconds timeout_;
  int epoll_ = -1, wake_ = -1;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> served_ = 0;
  std::mutex mutex_;
  std::vector<int> adopted_;      // guarded by mutex_
  std::vector<Response> pieces_;  // guarded by mutex_
  std::unordered_map<uint64_t, Connection> connections_;
  std::unordered_map<uint64_t, uint64_t> requests_;  // request id to connection
  uint64_t last_serial_ = 0, last_request_ = 0;
  Clock::time_point next_check_ = Clock::now();
  std::thread thread_;
};

Front::Front(const Options& options, DecodeScheduler& scheduler, RequestLog& log) {
  for (long i = 0; i < options.number("threads"); ++i) {
    loops_.push_back(std::make_unique<IoLoop>(options, scheduler, log, static_cast<uint64_t>(i)));
  }
}

Front::~Front() = default;

void Front::adopt(int fd) {
  loops_[next_++ % loops_.size()]->adopt(fd);
}

void Front::deliver(const Response& piece) {
  size_t loop = piece.id >> 56;
  if (loop < loops_.size()) loops_[loop]->deliver(piece);
}

uint64_t Front::served() const {
  uint64_t sum = 0;
  for (const auto& loop : loops_) sum += loop->served();
  return sum;
}

}  // namespace lab::media
