#include "os/sandbox/worker.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/sandbox/confine.h"

namespace assay::os {
namespace {

constexpr uint64_t kOpenFiles = 1024;
constexpr int kOutOfMemory = 110;  // an exit code that no command has
constexpr int kNotConfined = 111;
constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP};

AskingDoor* door_of_worker = nullptr;
volatile sig_atomic_t worker_pid = 0;

// The terminal tells the whole group; what one process sent to us alone is passed on.
void pass_on(int signal, siginfo_t* info, void*) {
  int before = errno;
  if (worker_pid > 0 && info->si_code <= 0) ::kill(worker_pid, signal);
  errno = before;
}

// While the worker works, this process must not end before it.
class PassedSignals {
 public:
  PassedSignals() {
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    for (size_t i = 0; i < kPassedOn.size(); ++i) {
      ::sigaction(kPassedOn[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kPassedOn[i], &action, nullptr);
    }
  }
  ~PassedSignals() { restore(); }
  PassedSignals(const PassedSignals&) = delete;
  PassedSignals& operator=(const PassedSignals&) = delete;
  void restore() {
    for (size_t i = 0; i < kPassedOn.size(); ++i) ::sigaction(kPassedOn[i], &before_[i], nullptr);
  }
  // For the child: nohup stays in force, everything else ends it.
  void set_default() {
    for (size_t i = 0; i < kPassedOn.size(); ++i)
      ::signal(kPassedOn[i], before_[i].sa_handler == SIG_IGN ? SIG_IGN : SIG_DFL);
  }

 private:
  std::array<struct sigaction, kPassedOn.size()> before_{};
};

uint64_t number_in(const char* path) {
  uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

uint64_t usual_heap_bytes() {
  constexpr uint64_t kLeast = uint64_t{1} << 30;
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // In a container: 0 where it is "max" or not there.
  if (uint64_t own = number_in("/sys/fs/cgroup/memory.max"); own > 0) bytes = std::min(bytes, own);
  return std::max(kLeast, bytes / 4 * 3);
}

uint64_t heap_limit(uint64_t wanted) {
  rlimit now{};
  if (::getrlimit(RLIMIT_DATA, &now) != 0) return wanted;
  return std::min<uint64_t>(wanted, now.rlim_cur);
}

[[noreturn]] void end_without_memory() {
  ::_exit(kOutOfMemory);
}

// What this process has open is not for the worker.
void close_others(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned first = STDERR_FILENO + 1;
  for (int fd : kept) {
    auto number = static_cast<unsigned>(fd);
    if (number > first) ::syscall(SYS_close_range, first, number - 1, 0);
    first = std::max(first, number + 1);
  }
  ::syscall(SYS_close_range, first, ~0u, 0);
}

[[noreturn]] void be_worker(const WorkerRules& rules, uint64_t heap_bytes, Channel channel,
                            const std::function<int()>& work) {
  std::vector<int> kept = rules.keeps;
  kept.push_back(channel.fd());
  close_others(std::move(kept));
  AskingDoor door(std::move(channel));
  set_file_door(&door);
  door_of_worker = &door;
  if (auto confined = confine({heap_bytes, kOpenFiles, true, rules.calls}); !confined) {
    std::fprintf(stderr, "assay: privileges cannot be given up to read %s: %s\n",
                 rules.reads.c_str(), confined.error().what.c_str());
    ::_exit(kNotConfined);
  }
  std::set_new_handler(end_without_memory);
  int code = work();
  std::fflush(nullptr);
  ::_exit(code);
}

Result<int> judge(const WorkerRules& rules, uint64_t heap_bytes, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) {
    return fail_with_remedy(
        fmt::format("{} needs more memory than the {} MB that reading may take", rules.reads,
                    heap_bytes >> 20),
        "read it on a machine with more memory, or select a part of it", ENOMEM);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  int signal = WTERMSIG(status);
  bool asked_for = std::ranges::find(kPassedOn, signal) != kPassedOn.end();
  if (asked_for) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  return fail_with_remedy(
      fmt::format("reading {} ended by a signal: {}", rules.reads, ::strsignal(signal)),
      "the file may be damaged, or made to do harm; Assay itself is not touched");
}

}  // namespace

Result<int> run_in_worker(const WorkerRules& rules, const std::function<int()>& work) {
  auto ends = Channel::pair();
  if (!ends) return std::unexpected(ends.error());
  uint64_t heap_bytes =
      heap_limit(rules.heap_bytes > 0 ? rules.heap_bytes : usual_heap_bytes());
  std::fflush(nullptr);
  ::tzset();  // reads its file while that can be opened
  PassedSignals signals;
  pid_t child = ::fork();
  if (child < 0) return fail_errno("no process can be started to read {}", rules.reads);
  if (child == 0) {
    signals.set_default();
    ends->first = Channel();
    be_worker(rules, heap_bytes, std::move(ends->second), work);
  }
  worker_pid = child;
  ends->second = Channel();
  int status = 0;
  {
    FileKeeper keeper(rules.files, rules.told);
    keeper.serve(ends->first);
    ends->first = Channel();
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  worker_pid = 0;
  signals.restore();
  return judge(rules, heap_bytes, status);
}

Result<void> tell_starter(const std::string& text) {
  if (door_of_worker == nullptr) return fail("this process was not started as a worker");
  return door_of_worker->tell(text);
}

}  // namespace assay::os
