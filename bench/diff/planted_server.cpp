// planted_server: a small HTTP server whose cost per request is fixed, with one change to plant.
//
// usage: planted_server PORT [dearer=1.1] [split] [keep] [move]
//   dearer=F  score() does F times its work
//   split     sixteen locks around the counters instead of one
//   keep      buffers are kept instead of allocated for each request
//   move      escape()'s work is done in a function of another name
// Every request runs parse(), score(), render() → escape(), count(); the shares stay the same. One
// thread per connection, keep-alive, loopback only. Ends by SIGTERM.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

struct Change {
  double dearer = 1;
  bool split = false, keep = false, move = false;
} change;

constexpr int kStep = 1000;

// A chain of operations that the compiler cannot simplify.
inline uint64_t churn(uint64_t value, int steps) {
  for (int i = 0; i < steps; ++i) value = (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9ULL + 1;
  return value;
}

[[gnu::noinline]] uint64_t parse(uint64_t seed) {
  return churn(seed, 8 * kStep);
}
[[gnu::noinline]] uint64_t score(uint64_t seed) {
  return churn(seed, static_cast<int>(30 * kStep * change.dearer));
}
[[gnu::noinline]] uint64_t escape(uint64_t seed) {
  return churn(seed + 1, 12 * kStep);
}
[[gnu::noinline]] uint64_t escape_in_place(uint64_t seed) {
  return churn(seed + 2, 12 * kStep);
}
[[gnu::noinline]] uint64_t render(uint64_t seed) {
  uint64_t escaped = change.move ? escape_in_place(seed) : escape(seed);
  return churn(escaped, 4 * kStep);
}

struct Counter {
  std::mutex mutex;
  uint64_t value = 0;
};
Counter counters[16];

[[gnu::noinline]] void count(uint64_t seed) {
  Counter& counter = counters[change.split ? seed % 16 : 0];
  std::lock_guard hold(counter.mutex);
  counter.value = churn(counter.value + seed, 6 * kStep);
}

[[gnu::noinline]] uint64_t fill_buffers(std::vector<std::unique_ptr<char[]>>& buffers,
                                        uint64_t seed) {
  uint64_t sum = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!change.keep || !buffers[i]) buffers[i] = std::make_unique<char[]>(200 + 37 * (i % 11));
    buffers[i][seed % 200] = static_cast<char>(seed);
    sum += static_cast<unsigned char>(buffers[i][0]);
  }
  return sum;
}

[[gnu::noinline]] uint64_t answer(uint64_t seed, std::vector<std::unique_ptr<char[]>>& buffers) {
  uint64_t value = parse(seed);
  value = score(value);
  value = render(value);
  value += fill_buffers(buffers, value);
  count(value);
  return value;
}

void serve(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::vector<std::unique_ptr<char[]>> buffers(160);
  std::string text;
  char bytes[4096];
  uint64_t seed = static_cast<uint64_t>(fd);
  for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
    for (size_t end; (end = text.find("\r\n\r\n")) != std::string::npos; text.erase(0, end + 4)) {
      seed = answer(seed, buffers);
      constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      if (write(fd, kAnswer.data(), kAnswer.size()) < 0) break;
    }
    if (text.size() > sizeof bytes) break;
  }
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 2; i < argc; ++i) {
    if (std::strncmp(argv[i], "dearer=", 7) == 0) change.dearer = std::atof(argv[i] + 7);
    if (std::strcmp(argv[i], "split") == 0) change.split = true;
    if (std::strcmp(argv[i], "keep") == 0) change.keep = true;
    if (std::strcmp(argv[i], "move") == 0) change.move = true;
  }
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 64) != 0) {
    perror("planted_server");
    return 1;
  }
  while (true) {
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) std::thread(serve, fd).detach();
  }
}
