// demo_server: a small, real HTTP server to profile. Loopback only.
//
// One acceptor (the main thread) hands connections to worker threads, each with its own epoll; all
// share one Catalogue. --fork N adds N worker processes that accept from the same socket. What it
// does:
//   /item/N     look up and render as JSON       (CPU, and the lock for a moment)
//   /update/N   change a price                   (the lock for a moment)
//   /search/W   scan the whole table             (the lock for a long time: the fault)
//   /slow/MS    wait, as for a slow database     (a timer)
// Ends on SIGINT or SIGTERM.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/demo/catalogue.h"
#include "lab/demo/http.h"

namespace {

constexpr long kItems = 400;
constexpr long kMaxSlowMs = 1000;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void watch(int epoll, int fd, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll, operation, fd, &event) != 0) die("epoll_ctl");
}

std::string answer(lab::Catalogue& catalogue, const std::string& path) {
  if (auto id = lab::http::number_after(path, "/item/")) {
    auto item = catalogue.find(*id);
    return item ? lab::http::make_response(200, lab::to_json(*item))
                : lab::http::make_response(404, "{}");
  }
  if (auto id = lab::http::number_after(path, "/update/")) {
    bool found = catalogue.update(*id, static_cast<double>(*id) / 7);
    return lab::http::make_response(found ? 200 : 404, "{}");
  }
  if (path.starts_with("/search/")) {
    size_t hits = catalogue.search(path.substr(8)).size();
    return lab::http::make_response(200, "{\"hits\":" + std::to_string(hits) + "}");
  }
  if (auto ms = lab::http::number_after(path, "/slow/")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(*ms, kMaxSlowMs)));
    return lab::http::make_response(200, "{}");
  }
  return lab::http::make_response(404, "{}");
}

// One thread with its own epoll and its own connections.
class Worker {
 public:
  Worker(lab::Catalogue& catalogue, int number) : catalogue_(catalogue) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_ < 0 || wake_ < 0) die("epoll");
    watch(epoll_, wake_, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = std::thread([this, number] {
      std::string name = "http_worker-" + std::to_string(number);
      pthread_setname_np(pthread_self(), name.c_str());
      run();
    });
  }
  ~Worker() {
    stopping_ = true;
    wake();
    thread_.join();
    for (auto& [fd, connection] : connections_) close(fd);
    close(wake_);
    close(epoll_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Takes over an accepted connection. From the acceptor's thread.
  void adopt(int fd) {
    {
      std::lock_guard lock(mutex_);
      adopted_.push_back(fd);
    }
    wake();
  }
  uint64_t served() const { return served_; }

 private:
  struct Connection {
    std::string in, out;
    bool closing = false;
  };

  void wake() {
    uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0 && errno != EAGAIN) die("eventfd");
  }

  void run() {
    epoll_event events[64];
    while (!stopping_) {
      int count = epoll_wait(epoll_, events, 64, -1);
      if (count < 0 && errno != EINTR) die("epoll_wait");
      for (int i = 0; i < count; ++i) {
        int fd = events[i].data.fd;
        if (fd == wake_) {
          take_adopted();
        } else if (!serve(fd, events[i].events)) {
          close(fd);
          connections_.erase(fd);
        }
      }
    }
  }

  void take_adopted() {
    uint64_t ignored;
    if (read(wake_, &ignored, sizeof ignored) < 0 && errno != EAGAIN) die("eventfd");
    std::vector<int> fds;
    {
      std::lock_guard lock(mutex_);
      fds.swap(adopted_);
    }
    for (int fd : fds) {
      connections_.emplace(fd, Connection{});
      watch(epoll_, fd, EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  // False: the connection is done.
  bool serve(int fd, uint32_t events) {
    Connection& connection = connections_.at(fd);
    if (events & EPOLLIN && !read_requests(fd, connection)) return false;
    if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)) return false;
    return send_pending(fd, connection);
  }

  bool read_requests(int fd, Connection& connection) {
    char bytes[8192];
    ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    connection.in.append(bytes, static_cast<size_t>(got));
    lab::http::Request request;
    lab::http::Parse parse;
    while ((parse = lab::http::take_request(connection.in, request)) ==
           lab::http::Parse::complete) {
      connection.out += answer(catalogue_, request.path);
      served_.fetch_add(1, std::memory_order_relaxed);
      if (!request.keep_alive) connection.closing = true;
    }
    return parse != lab::http::Parse::bad;
  }

  bool send_pending(int fd, Connection& connection) {
    if (connection.out.empty()) return !connection.closing;
    ssize_t sent = send(fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) return false;
      sent = 0;
    }
    connection.out.erase(0, static_cast<size_t>(sent));
    bool pending = !connection.out.empty();
    watch(epoll_, fd, pending ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    return pending || !connection.closing;
  }

  lab::Catalogue& catalogue_;
  int epoll_ = -1, wake_ = -1;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> served_ = 0;
  std::mutex mutex_;
  std::vector<int> adopted_;                         // guarded by mutex_
  std::unordered_map<int, Connection> connections_;  // the worker's own
  std::thread thread_;
};

struct Options {
  int port = 0;  // 0: any free one
  int threads = 4;
  int forks = 0;
};

int listen_on_loopback(int& port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) die("socket");
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("cannot bind");
  if (listen(fd, 512) != 0) die("cannot listen");
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

// Accepts until a signal comes; returns requests served.
uint64_t serve_until_signal(int listener, int signals, const Options& options) {
  lab::Catalogue catalogue(kItems);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 1; i <= options.threads; ++i)
    workers.push_back(std::make_unique<Worker>(catalogue, i));

  int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, signals, EPOLLIN, EPOLL_CTL_ADD);
  watch(epoll, listener, EPOLLIN, EPOLL_CTL_ADD);
  size_t next = 0;
  for (bool stop = false; !stop;) {
    epoll_event events[2];
    int count = epoll_wait(epoll, events, 2, -1);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == signals) {
        stop = true;
        continue;
      }
      int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) continue;  // another process was quicker
      int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      workers[next++ % workers.size()]->adopt(fd);
    }
  }
  close(epoll);
  uint64_t served = 0;
  for (const auto& worker : workers) served += worker->served();
  return served;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    int* value = name == "--port"      ? &options.port
                 : name == "--threads" ? &options.threads
                 : name == "--fork"    ? &options.forks
                                       : nullptr;
    if (!value || i + 1 >= argc) {
      std::fprintf(stderr, "usage: demo_server [--port N] [--threads 4] [--fork 0]\n");
      std::exit(2);
    }
    *value = std::atoi(argv[++i]);
  }
  if (options.threads < 1 || options.threads > 1000 || options.forks < 0 || options.forks > 64) {
    std::fprintf(stderr, "demo_server: --threads is 1 to 1000, --fork 0 to 64\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  int listener = listen_on_loopback(options.port);
  std::printf("listening on 127.0.0.1:%d\n", options.port);
  std::fflush(stdout);

  std::vector<pid_t> children;
  for (int i = 0; i < options.forks; ++i) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) return 1;
      int signals = signalfd(-1, &set, SFD_CLOEXEC);
      serve_until_signal(listener, signals, options);
      return 0;
    }
    children.push_back(child);
  }
  int signals = signalfd(-1, &set, SFD_CLOEXEC);
  uint64_t served = serve_until_signal(listener, signals, options);
  for (pid_t child : children) kill(child, SIGTERM);
  for (pid_t child : children) waitpid(child, nullptr, 0);
  std::printf("served %lu requests\n", static_cast<unsigned long>(served));
  return 0;
}
