// A program with known behaviour, for the tests of libassay: threads that compute, allocate, fight
// for a mutex, wait for a condition and for a semaphore; each kind in a function of its own.
//
// workload [--serve ADDRESS] [--threads N] [--seconds S] [--fork] [--fork-early] [--pause]
// [--blocked]: prints
// "port N", then works; or does nothing but pause() until a signal comes. Built with libassay.so
// (serves and labels), with libassay.a, and without either (preloaded).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_ASSAY
#include <assay/assay.hpp>
#endif

namespace {

std::atomic<bool> done = false;
std::mutex hot_mutex;
std::mutex bell_mutex;
std::condition_variable bell;
sem_t turnstile, gate;
struct Freeing {
  void operator()(char* block) const { std::free(block); }
};
std::vector<std::unique_ptr<char, Freeing>> kept;

}  // namespace

// A wrapper as many programs have it: heap profiles charge its caller.
extern "C" [[gnu::noinline]] void* xmalloc(size_t bytes) {
  void* made = std::malloc(bytes);
  if (made == nullptr) std::abort();
  return made;
}

[[gnu::noinline]] uint64_t burn_cpu(long steps) {
  uint64_t sum = 0;
  for (long i = 0; i < steps; ++i) {
    sum += static_cast<uint64_t>(i) * static_cast<uint64_t>(i);
    asm volatile("" : "+r"(sum));
  }
  return sum;
}

[[gnu::noinline]] void hold_hot_mutex() {
  std::lock_guard hold(hot_mutex);
  burn_cpu(200'000);
  asm volatile("");
}

[[gnu::noinline]] void keep_memory() {
  kept.emplace_back(static_cast<char*>(xmalloc(256 << 10)));
  *kept.back() = 1;
}

[[gnu::noinline]] void churn_memory() {
  auto block = std::make_unique<char[]>(16 << 10);
  block[1] = 2;
  asm volatile("" : : "r"(block.get()) : "memory");
}

[[gnu::noinline]] void wait_for_bell() {
  std::unique_lock lock(bell_mutex);
  bell.wait_for(lock, std::chrono::milliseconds(20));
}

[[gnu::noinline]] void wait_at_turnstile() {
  sem_wait(&turnstile);
}

// What a thread does that no signal reaches.
[[gnu::noinline]] void sleep_unreachably() {
  sem_wait(&gate);
  asm volatile("");
}
[[gnu::noinline]] void burn_unreachably() {
  while (!done) burn_cpu(500'000);
}

constexpr int kSleepers = 3;

void add_unreachable_threads(std::vector<std::thread>& workers) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < kSleepers; ++i) workers.emplace_back(sleep_unreachably);
  workers.emplace_back(burn_unreachably);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void compute(int number) {
#ifdef WITH_ASSAY
  assay::label scope("worker", std::to_string(number));
#else
  (void)number;
#endif
  while (!done) {
    {
#ifdef WITH_ASSAY
      assay::label inner("method", "burn");
#endif
      burn_cpu(500'000);
    }
    hold_hot_mutex();
    for (int i = 0; i < 4; ++i) churn_memory();
  }
}

struct Options {
  std::string address;
  int threads = 2;
  double seconds = 60;
  bool fork_child = false, blocked = false, pause = false;
};

static Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--serve" && i + 1 < argc) options.address = argv[++i];
    if (word == "--threads" && i + 1 < argc) options.threads = std::atoi(argv[++i]);
    if (word == "--seconds" && i + 1 < argc) options.seconds = std::atof(argv[++i]);
    if (word == "--fork") options.fork_child = true;
    if (word == "--blocked") options.blocked = true;
    if (word == "--pause") options.pause = true;
  }
  return options;
}

// False: libassay could not serve, and the reason is printed.
static bool serve(const std::string& address) {
#ifdef WITH_ASSAY
  if (!address.empty()) {
    int port = assay::serve(address);
    if (port < 0) {
      std::printf("error %s\n", assay::last_error().c_str());
      return false;
    }
    std::printf("port %d\n", port);
    std::fflush(stdout);
  }
#else
  (void)address;
#endif
  return true;
}

static void keep_going(double seconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
#ifdef WITH_ASSAY
    assay::label scope("keeps", "memory");
#endif
    if (kept.size() < 200) keep_memory();
    sem_post(&turnstile);
  }
}

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  if (options.pause) {
    std::signal(SIGTERM, [](int) {});
    pause();
    return 0;
  }
  sem_init(&turnstile, 0, 0);
  sem_init(&gate, 0, 0);
  if (!serve(options.address)) return 1;
  pid_t child = options.fork_child ? fork() : -1;
  std::vector<std::thread> workers;
  for (int i = 0; i < options.threads; ++i) workers.emplace_back(compute, i);
  workers.emplace_back([] {
#ifdef WITH_ASSAY
    assay::label scope("waits", "for the bell");
#endif
    while (!done) wait_for_bell();
  });
  workers.emplace_back([] {
    while (!done) wait_at_turnstile();
  });
  if (options.blocked) add_unreachable_threads(workers);
  keep_going(options.seconds);
  done = true;
  sem_post(&turnstile);
  for (int i = 0; i < kSleepers; ++i) sem_post(&gate);
  for (std::thread& worker : workers) worker.join();
  int child_status = 0;
  if (child > 0) waitpid(child, &child_status, 0);
  std::printf("kept %zu\n", kept.size());
  return child_status == 0 ? 0 : 1;
}
