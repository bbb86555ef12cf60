// attach_target: programs that an injector must not harm, each of which checks itself.
//
//   prog_attach_target
//   busy|idle|forking|holding|dlopening|signals|threads|prefork|brief|filtered|strict
//
// "brief" forks a child every few milliseconds that allocates 4 MiB in one function and ends.
// "prefork" forks two busy workers a second after it began. "filtered" is busy under a seccomp
// filter that refuses what servers do not need, "strict" under one that ends it at memfd_create.
//
// Runs until SIGTERM, then prints one line of JSON: what it did ("rounds") and what went wrong
// ("faults", with the first in words), and exits 0 when nothing did. Every mode has a watch that
// counts a round that took far too long as a hang.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

std::atomic<bool> stop{false};
std::atomic<unsigned long> rounds{0}, faults{0};
std::mutex first_mutex;
std::string first_fault;

// Also printed at once: so it is visible if the program is killed, or if only stderr is read.
void fault(const std::string& what) {
  faults.fetch_add(1);
  std::lock_guard lock(first_mutex);
  std::fprintf(stderr, "attach_target %d: fault: %s\n", getpid(), what.c_str());
  if (first_fault.empty()) first_fault = what;
}

double now_s() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Memory whose content must not change.
void churn(unsigned seed, int count) {
  constexpr int kHeld = 16;
  unsigned char* held[kHeld] = {};
  size_t sizes[kHeld] = {};
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    int slot = static_cast<int>(seed >> 16) % kHeld;
    if (held[slot] != nullptr) {
      for (size_t k = 0; k < sizes[slot]; k += 61)
        if (held[slot][k] != static_cast<unsigned char>(slot)) return fault("memory changed");
      std::free(held[slot]);
    }
    sizes[slot] = 16 + seed % 6000;
    held[slot] = static_cast<unsigned char*>(std::malloc(sizes[slot]));
    if (held[slot] == nullptr) return fault("malloc failed");
    std::memset(held[slot], slot, sizes[slot]);
  }
  for (unsigned char* block : held) std::free(block);
  rounds.fetch_add(1, std::memory_order_relaxed);
}

void run_busy() {
  for (unsigned i = 0; !stop; ++i) churn(i, 500);
}

// Sleeps in every way; none may end early or be interrupted.
void idle_once(int way, int epoll, const int* pipes) {
  double begin = now_s();
  constexpr double kSleep = 0.05;
  timespec time{0, 50'000'000};
  int result = 0;
  if (way == 0) result = nanosleep(&time, nullptr);
  epoll_event event{};
  if (way == 1) result = epoll_wait(epoll, &event, 1, 50);
  pollfd poll_on{pipes[0], POLLIN, 0};
  if (way == 2) result = poll(&poll_on, 1, 50);
  fd_set set;
  FD_ZERO(&set);
  timeval wait{0, 50'000};
  if (way == 3) result = select(0, nullptr, nullptr, &set, &wait);
  if (stop) return;  // SIGTERM may end a sleep
  if (result != 0)
    return fault("sleep " + std::to_string(way) + " gave " + std::to_string(result) + " " +
                 std::strerror(errno));
  double slept = now_s() - begin;
  if (slept < kSleep * 0.95) fault("sleep " + std::to_string(way) + " ended early");
  rounds.fetch_add(1, std::memory_order_relaxed);
}

void run_idle() {
  int epoll = epoll_create1(0), pipes[2] = {};
  if (epoll < 0 || pipe(pipes) != 0) return fault("cannot make descriptors");
  for (int way = 0; !stop; way = (way + 1) % 4) {
    idle_once(way, epoll, pipes);
    churn(static_cast<unsigned>(way), 20);
  }
}

// Children allocate and end by themselves; one that crashes or hangs is a fault.
void run_forking() {
  for (unsigned i = 0; !stop; ++i) {
    churn(i, 200);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      churn(i, 500);
      _exit(faults.load() == 0 ? 0 : 3);
    }
    if (child < 0) continue;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) fault("a child ended with status " + std::to_string(status));
  }
}

// Forks while another thread has the loader's lock: in the child it stays locked.
void run_holding() {
  std::thread holder([] {
    auto linger = [](dl_phdr_info*, size_t, void*) {
      usleep(1'000);
      return 0;
    };
    while (!stop) {
      dl_iterate_phdr(linger, nullptr);
      usleep(2'000);  // other threads need it, too
    }
  });
  run_forking();
  holder.join();
}

void run_dlopening() {
  const char* libraries[] = {"libm.so.6", "libstdc++.so.6", "libz.so.1", "libzstd.so.1",
                             "libsqlite3.so.0"};
  for (unsigned i = 0; !stop; ++i) {
    void* handle = dlopen(libraries[i % 5], i % 2 == 0 ? RTLD_NOW : RTLD_LAZY);
    churn(i, 50);
    if (handle != nullptr) dlclose(handle);
  }
}

std::atomic<unsigned long> signals_got{0};
void count_signal(int) {
  int before = errno;
  signals_got.fetch_add(1);
  errno = before;
}

// Real-time signals queue: as many must arrive as were sent.
void run_signals() {
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMIN, &action, nullptr);
  unsigned long sent = 0;
  std::thread worker([] { run_busy(); });
  while (!stop) {
    for (int i = 0; i < 20; ++i) {
      sigval value{};
      if (sigqueue(getpid(), SIGRTMIN, value) == 0) ++sent;
      churn(static_cast<unsigned>(i), 20);
    }
    usleep(500);
  }
  worker.join();
  for (int i = 0; i < 100 && signals_got < sent; ++i) usleep(10'000);
  if (signals_got != sent)
    fault(std::to_string(sent) + " signals sent, " + std::to_string(signals_got) + " got");
}

void run_threads() {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 200; ++i) {
    threads.emplace_back([i] {
      while (!stop) {
        churn(i, 30);
        usleep(2000 + i * 10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Workers are forked after a while, and work until their parent has ended.
void run_prefork() {
  sleep(1);
  pid_t workers[2] = {};
  for (pid_t& worker : workers) {
    worker = fork();
    if (worker == 0) {
      run_busy();
      _exit(faults.load() == 0 ? 0 : 3);
    }
  }
  while (!stop) {
    churn(1, 50);
    usleep(20'000);
  }
  for (pid_t worker : workers) {
    kill(worker, SIGTERM);
    int status = 0;
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) fault("a worker ended with status " + std::to_string(status));
  }
}

}  // namespace

// What it allocates is the same in every child; nothing is freed, so that it is seen at the end.
__attribute__((noinline)) void allocate_briefly() {
  constexpr int kBlocks = 64;
  constexpr size_t kBlockBytes = 64 << 10;
  for (int i = 0; i < kBlocks; ++i) {
    void* volatile block = std::malloc(kBlockBytes);
    if (block == nullptr) return fault("malloc failed");
  }
}

namespace {

void run_brief() {
  unsigned long children = 0;
  while (!stop) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      allocate_briefly();
      _exit(faults.load() == 0 ? 0 : 3);
    }
    if (child < 0) continue;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) fault("a child ended with status " + std::to_string(status));
    ++children;
    rounds.fetch_add(1, std::memory_order_relaxed);
    usleep(30'000);
  }
  std::printf("children %lu\n", children);
}

// Everything is allowed except one call.
void filter_out(long number, unsigned answer) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{4, program};
  bool set = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
             prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  if (!set) fault("no filter can be set");
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  struct sigaction action {};
  action.sa_handler = [](int) { stop = true; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  if (mode == "filtered") filter_out(SYS_ptrace, SECCOMP_RET_ERRNO | EPERM);
  if (mode == "strict") filter_out(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
  std::printf("ready\n");
  std::fflush(stdout);
  // Only the main thread handles SIGTERM.
  if (mode == "busy" || mode == "filtered" || mode == "strict") run_busy();
  if (mode == "prefork") run_prefork();
  if (mode == "brief") run_brief();
  if (mode == "idle") run_idle();
  if (mode == "forking") run_forking();
  if (mode == "holding") run_holding();
  if (mode == "dlopening") run_dlopening();
  if (mode == "signals") run_signals();
  if (mode == "threads") run_threads();
  std::printf("{\"rounds\":%lu,\"faults\":%lu,\"first\":\"%s\"}\n", rounds.load(), faults.load(),
              first_fault.c_str());
  return faults.load() == 0 && rounds.load() > 0 ? 0 : 1;
}
