// TracedChild: a forked process whose body the test chooses, to be traced and held.
//
// Parent and child see one page of shared counters. The code of both is the same, so the address of
// a function here is its address there. The child is killed with the object. For tests only.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "os/process/procfs.h"

namespace assay::capture::fake {

struct SharedCounters {
  static constexpr int kRunning = -1;
  std::atomic<pid_t> pid{0};
  std::atomic<int> status{kRunning};  // as of waitpid(), once it has ended
  std::atomic<bool> ready{false}, stop{false};
  std::atomic<uint64_t> rounds{0}, signals{0}, told{0};
};

// Looks again and again for at most ten seconds; false when it never held.
inline bool eventually(const std::function<bool()>& holds) {
  constexpr int64_t kPatienceNs = 10 * kNsPerSecond;
  constexpr useconds_t kLookUs = 500;
  for (TimeNs deadline = monotonic_ns() + kPatienceNs; monotonic_ns() < deadline; usleep(kLookUs)) {
    if (holds()) return true;
  }
  return holds();
}

class TracedChild {
 public:
  using Body = std::function<int(SharedCounters&)>;  // gives the exit status

  // Waits until the body has set `ready`.
  explicit TracedChild(const Body& body) {
    void* page = ::mmap(nullptr, sizeof(SharedCounters), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    if (page == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    shared_ = new (page) SharedCounters();
    pid_t between = ::fork();
    if (between == 0) {
      ::close(ends[1]);
      if (::fork() == 0) keep(body, ends[0]);
      ::_exit(0);
    }
    ::close(ends[0]);
    alive_ = UniqueFd(ends[1]);
    ::waitpid(between, nullptr, 0);
    if (!eventually([this] { return shared_->ready.load(); })) std::abort();
  }
  ~TracedChild() {
    alive_.reset();  // the keeper kills it now
    (void)eventually([this] { return shared_->status != kRunning; });
    ::munmap(shared_, sizeof *shared_);
  }
  TracedChild(const TracedChild&) = delete;
  TracedChild& operator=(const TracedChild&) = delete;

  pid_t pid() const { return shared_->pid; }
  SharedCounters& shared() { return *shared_; }

  bool goes_on() {
    uint64_t before = shared_->rounds;
    return eventually([&] { return shared_->rounds > before + 2; });
  }
  char state() const {
    auto stat = os::ProcFs().stat(pid());
    return stat ? stat->state : '?';
  }
  // Whether it waits in this system call.
  bool waits_in(int64_t number) const {
    return eventually([&] {
      auto call = os::ProcFs().syscall(pid(), pid());
      return call && *call && (*call)->number == number;
    });
  }
  // Lets the body end, and says how: "exit 0", "signal 5".
  std::string end() {
    shared_->stop = true;
    if (!eventually([this] { return shared_->status != kRunning; })) return "it does not end";
    int status = shared_->status;
    return WIFEXITED(status) ? fmt::format("exit {}", WEXITSTATUS(status))
                             : fmt::format("signal {}", WTERMSIG(status));
  }

 private:
  static constexpr int kRunning = SharedCounters::kRunning;

  // The keeper is the target's parent, and no child of the test: a tracer waits for all its
  // children and must see none but those that it traces.
  [[noreturn]] void keep(const Body& body, int test_lives) {
    pid_t target = ::fork();  // not in the shared page: both write there
    if (target == 0) {
      shared_->pid = ::getpid();
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
      ::_exit(body(*shared_));
    }
    int status = 0;
    constexpr int kLookMs = 2;
    while (::waitpid(target, &status, WNOHANG) != target) {
      pollfd other{test_lives, 0, 0};
      if (::poll(&other, 1, kLookMs) > 0) ::kill(target, SIGKILL);
    }
    shared_->status = status;
    ::_exit(0);
  }

  UniqueFd alive_;  // closed with the test, however it ends
  SharedCounters* shared_ = nullptr;
};

// Where a busy child comes by in every round, as a program does at malloc.
[[gnu::noinline]] inline uint64_t come_by(uint64_t number) {
  asm volatile("nop; nop" ::: "memory");
  return number + 1;
}

// Computes in vector registers and comes by come_by(), until it is stopped. 0: the sums were right.
inline int run_busily(SharedCounters& shared) {
  double sum = 0, product = 1;
  uint64_t rounds = 0;
  shared.ready = true;
  while (!shared.stop) {
    rounds = come_by(rounds);
    sum += 0.5;
    product *= -1;
    shared.rounds = rounds;
  }
  bool right = sum == 0.5 * static_cast<double>(rounds) && product == (rounds % 2 == 0 ? 1 : -1);
  return right ? 0 : 1;
}

// Sleeps again and again; 0: no sleep was interrupted.
inline int sleep_undisturbed(SharedCounters& shared) {
  shared.ready = true;
  while (!shared.stop) {
    timespec nap{0, 20'000'000};
    if (::nanosleep(&nap, nullptr) != 0) return 2;
    shared.rounds += 1;
  }
  return 0;
}

}  // namespace assay::capture::fake
