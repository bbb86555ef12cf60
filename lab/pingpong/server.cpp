// pingpong_server: a switch-heavy server with a switchable rate, and its own throughput as output.
//
// Two threads (pinned to one CPU with --pin) pass a byte back and forth over two pipes: every
// hand-off is a context switch and nothing else, the worst case for a profiler of waits. --work-us
// puts about so much fixed arithmetic into every round trip; --rate N paces it to N switches a
// second. --depth N makes both threads switch N calls deeper in the stack. Prints "ready PID" when
// it runs, then one JSON line at the end: {"round_trips":N,"seconds":S,"switches":N} --counter FILE
// keeps the round trips so far in FILE, 8 bytes, for a reader that maps it. Ends after --for
// SECONDS, or on SIGTERM.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

struct Options {
  long seconds = 5;
  long rate = 0;  // switches a second; 0: as many as possible
  long work_us = 0;
  long depth = 0;
  bool pin = false;
  std::string counter;
};

std::atomic<bool> g_stop = false;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

long now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000L + t.tv_nsec;
}

// A fixed amount of arithmetic, not of time: a slower machine or an attached profiler must show.
uint64_t work(long units) {
  uint64_t x = 88172645463325252ull;
  for (long i = 0; i < units * 250; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}
volatile uint64_t g_sink;

void pin_to_first_cpu() {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  if (sched_setaffinity(0, sizeof one, &one) != 0) die("sched_setaffinity");
}

// The count of round trips: in the file that others map, or in memory of our own.
std::atomic<uint64_t>* make_counter(const std::string& path) {
  static std::atomic<uint64_t> own = 0;
  if (path.empty()) return &own;
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof own) != 0) die("cannot make the counter file");
  void* page = mmap(nullptr, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) die("mmap");
  close(fd);
  return new (page) std::atomic<uint64_t>(0);
}

// Calls `body` that many calls deeper; what each call keeps makes it a real frame.
template <class Body>
[[gnu::noinline]] long descend(long left, const Body& body) {
  volatile long own[2] = {left, left + 1};
  if (left <= 0) {
    body();
    return own[0];
  }
  return descend(left - 1, body) + own[1];
}

void pong(int in, int out) {
  pthread_setname_np(pthread_self(), "pong");
  char byte;
  while (read(in, &byte, 1) == 1) {
    if (write(out, &byte, 1) != 1) break;
  }
}

// Round trips until the end. A paced one is three switches: each thread sleeps once in read(), and
// this one once more until the next is due.
void ping(int out, int in, const Options& options, std::atomic<uint64_t>& trips) {
  long end = now_ns() + options.seconds * 1'000'000'000L;
  long interval = options.rate > 0 ? 3'000'000'000L / options.rate : 0;
  long next = now_ns();
  char byte = 'x';
  while (!g_stop && next < end && now_ns() < end) {
    if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1) break;
    if (options.work_us > 0) g_sink = work(options.work_us);
    trips.fetch_add(1, std::memory_order_relaxed);
    if (interval > 0) {
      next += interval;
      timespec t{next / 1'000'000'000L, next % 1'000'000'000L};
      if (next > now_ns()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
    }
  }
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--pin") {
      options.pin = true;
      continue;
    }
    if (name == "--counter" && i + 1 < argc) {
      options.counter = argv[++i];
      continue;
    }
    long* value = name == "--for"       ? &options.seconds
                  : name == "--rate"    ? &options.rate
                  : name == "--work-us" ? &options.work_us
                  : name == "--depth"   ? &options.depth
                                        : nullptr;
    if (!value || i + 1 >= argc) {
      std::fprintf(stderr,
                   "usage: pingpong_server [--for SECONDS] [--rate SWITCHES] [--work-us N] [--pin] "
                   "[--depth N] [--counter FILE]\n");
      std::exit(2);
    }
    *value = std::atol(argv[++i]);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  std::signal(SIGTERM, [](int) { g_stop = true; });
  if (options.pin) pin_to_first_cpu();
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) die("pipe");
  std::atomic<uint64_t>* trips = make_counter(options.counter);
  std::thread other([&] {
    g_sink = static_cast<uint64_t>(descend(options.depth, [&] { pong(there[0], back[1]); }));
  });
  std::printf("ready %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);

  long begin = now_ns();
  g_sink = static_cast<uint64_t>(
      descend(options.depth, [&] { ping(there[1], back[0], options, *trips); }));
  double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  close(there[1]);
  other.join();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"round_trips\":%lu,\"seconds\":%.6f,\"switches\":%ld}\n",
              static_cast<unsigned long>(*trips), seconds, usage.ru_nvcsw + usage.ru_nivcsw);
  return 0;
}
