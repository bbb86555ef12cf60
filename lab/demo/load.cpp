// demo_load: drives demo_server on loopback: N keep-alive connections in a closed loop, for a
// while.
//
// Each connection sends one request, waits for its answer, thinks for --think-us, and goes on.
// Prints requests per second and latency. Latency here is that of a closed loop: it says nothing
// about what requests that were never sent would have seen.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/demo/http.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int port = 0;
  int connections = 16;
  int seconds = 10;
  int think_us = 500;
};

struct Connection {
  int fd = -1;
  std::string in;
  Clock::time_point sent;
};

volatile std::sig_atomic_t g_stop = 0;

// What is asked for, by share: mostly items, some updates, the slow paths now and then.
std::string choose_path(std::mt19937& random) {
  unsigned dice = random() % 1000;
  std::string id = std::to_string(random() % 400);
  if (dice < 800) return "/item/" + id;
  if (dice < 950) return "/update/" + id;
  if (dice < 990) return "/search/furnace stone";
  return "/slow/5";
}

class Load {
 public:
  explicit Load(const Options& options) : options_(options), connections_(options.connections) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < connections_.size(); ++i) open(i);
  }
  ~Load() {
    for (auto& connection : connections_) close(connection.fd);
    close(epoll_);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // False when the server went away or answered nonsense.
  bool run() {
    auto begin = Clock::now();
    auto end = begin + std::chrono::seconds(options_.seconds);
    for (size_t i = 0; i < connections_.size(); ++i) thinking_.push({begin, i});
    while (!g_stop && Clock::now() < end) {
      if (!send_due() || !receive()) return false;
    }
    elapsed_ = std::chrono::duration<double>(Clock::now() - begin).count();
    return true;
  }

  void print() {
    std::sort(latencies_us_.begin(), latencies_us_.end());
    auto at = [&](double share) {
      return latencies_us_.empty() ? 0.0
                                   : latencies_us_[static_cast<size_t>(
                                         share * static_cast<double>(latencies_us_.size() - 1))];
    };
    std::printf(
        "%zu requests in %.1f s: %.0f requests/s, latency p50 %.0f us, p99 %.0f us, max %.0f us\n",
        latencies_us_.size(), elapsed_, static_cast<double>(latencies_us_.size()) / elapsed_,
        at(0.5), at(0.99), at(1.0));
  }

 private:
  struct Due {
    Clock::time_point when;
    size_t connection;
    bool operator>(const Due& other) const { return when > other.when; }
  };

  void open(size_t index) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      std::perror("demo_load: cannot connect");
      std::exit(1);
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    connections_[index].fd = fd;
  }

  bool send_due() {
    auto now = Clock::now();
    while (!thinking_.empty() && thinking_.top().when <= now) {
      Connection& connection = connections_[thinking_.top().connection];
      thinking_.pop();
      std::string request = lab::http::make_request(choose_path(random_));
      connection.sent = Clock::now();
      if (send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(request.size())) {
        std::perror("demo_load: send");
        return false;
      }
    }
    return true;
  }

  timespec patience() const {
    using std::chrono::nanoseconds;
    nanoseconds wait = std::chrono::milliseconds(100);  // to notice the end
    if (!thinking_.empty())
      wait = std::clamp<nanoseconds>(thinking_.top().when - Clock::now(), nanoseconds(0), wait);
    return {0, static_cast<long>(wait.count())};
  }

  bool receive() {
    epoll_event events[64];
    timespec wait = patience();
    int count = epoll_pwait2(epoll_, events, 64, &wait, nullptr);
    for (int i = 0; i < count; ++i) {
      if (!receive_on(events[i].data.u64)) return false;
    }
    return true;
  }

  bool receive_on(size_t index) {
    Connection& connection = connections_[index];
    char bytes[16384];
    ssize_t got = recv(connection.fd, bytes, sizeof bytes, 0);
    if (got <= 0) {
      std::fprintf(stderr, "demo_load: the server closed the connection\n");
      return false;
    }
    connection.in.append(bytes, static_cast<size_t>(got));
    lab::http::Response response;
    auto parse = lab::http::take_response(connection.in, response);
    if (parse == lab::http::Parse::incomplete) return true;
    if (parse == lab::http::Parse::bad || response.status != 200) {
      std::fprintf(stderr, "demo_load: unexpected answer (status %d)\n", response.status);
      return false;
    }
    auto now = Clock::now();
    latencies_us_.push_back(
        std::chrono::duration<double, std::micro>(now - connection.sent).count());
    thinking_.push({now + std::chrono::microseconds(options_.think_us), index});
    return true;
  }

  Options options_;
  std::vector<Connection> connections_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> thinking_;
  std::vector<double> latencies_us_;
  std::mt19937 random_{1};
  int epoll_ = -1;
  double elapsed_ = 0;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    int* value = name == "--port"          ? &options.port
                 : name == "--connections" ? &options.connections
                 : name == "--for"         ? &options.seconds
                 : name == "--think-us"    ? &options.think_us
                                           : nullptr;
    if (!value || i + 1 >= argc) {
      std::fprintf(
          stderr,
          "usage: demo_load --port N [--connections 16] [--for SECONDS] [--think-us 500]\n");
      std::exit(2);
    }
    *value = std::atoi(argv[++i]);
  }
  if (options.port <= 0 || options.connections < 1 || options.seconds < 1 || options.think_us < 0) {
    std::fprintf(stderr, "demo_load: --port, --connections and --for must be positive\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  std::signal(SIGINT, [](int) { g_stop = 1; });
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  Load load(options);
  if (!load.run()) return 1;
  load.print();
  return 0;
}
