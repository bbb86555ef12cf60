#include "os/sandbox/child_process.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace assay::os {
namespace {

// A child that does not know its word (a test program, say) would go on as the program itself does,
// and start children in turn. This mark in its environment ends that.
constexpr char kMark[] = "ASSAY_CHILD=1";
constexpr char kMarkName[] = "ASSAY_CHILD";

std::vector<char*> marked_environment(char* mark) {
  std::vector<char*> all{mark};
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.push_back(*one);
  all.push_back(nullptr);
  return all;
}

// Every other descriptor of the caller is closed by its close-on-exec flag.
void add_actions(posix_spawn_file_actions_t& actions, int channel) {
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, channel, kChannelDescriptor);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::string& program,
                                         const std::vector<std::string>& arguments) {
  if (::getenv(kMarkName) != nullptr) return fail("a child of Assay starts no children");
  auto ends = Channel::pair();
  if (!ends) return std::unexpected(ends.error());
  // dup2() onto itself would leave the close-on-exec flag: the child's end must not be descriptor 3
  // already.
  UniqueFd theirs(::fcntl(ends->second.fd(), F_DUPFD_CLOEXEC, kChannelDescriptor + 1));
  if (!theirs.valid()) return fail_errno("no descriptor left");
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  add_actions(actions, theirs.get());
  // A Ctrl-C in the terminal is for the caller: a group of its own keeps the child out of it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t pid = -1;
  std::string mark = kMark;
  std::vector<char*> environment = marked_environment(mark.data());
  int error =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  errno = error;
  if (error != 0) return fail_errno("cannot start {}", program);
  return ChildProcess(pid, std::move(ends->first));
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  channel_ = std::move(other.channel_);
  return *this;
}

int64_t ChildProcess::cpu_ns() const {
  clockid_t clock{};
  timespec used{};
  if (pid_ <= 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    return -1;
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

std::string ChildProcess::end() {
  if (pid_ <= 0) return "";
  channel_ = Channel();  // it ends by itself when its channel closes
  int status = 0;
  pid_t ended = 0;
  for (int tries = 0; tries < 50 && ended == 0; ++tries) {
    ended = ::waitpid(pid_, &status, WNOHANG);
    timespec moment{0, 1'000'000};
    if (ended == 0) ::nanosleep(&moment, nullptr);
  }
  if (ended == 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  if (ended == 0) return "it was killed";
  if (WIFSIGNALED(status)) return fmt::format("it died of {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("it ended with status {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace assay::os
