#include "os/process/launch.h"

#include <algorithm>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace assay::os {
namespace {

constexpr int kParentCheckMs = 500;
constexpr int64_t kPollIntervalNs = 5 * kNsPerMs;
constexpr int kCommandNotFound = 127, kCannotExecute = 126;  // the shell's exit codes

struct PipeEnds {
  UniqueFd read, write;
};

// A socket pair rather than a pipe: writing to a child that was killed must not raise SIGPIPE.
Result<PipeEnds> make_pipe() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
    return fail_errno("cannot make a pipe");
  }
  return PipeEnds{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Everything below runs in the child of a possibly multi-threaded parent: async-signal-safe calls
// only.

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) < 0) continue;
    // What was ignored when Assay started (nohup) stays so; SIGPIPE is Assay's own doing.
    bool ignored = !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN;
    if (ignored && signal != SIGPIPE) continue;
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    ::sigaction(signal, &by_default, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// True when told to run. Asks for the parent now and then, because another child of Assay may hold
// a copy of the pipe's write end and so hide the end of file.
bool wait_for_release(int pipe, pid_t parent) {
  for (;;) {
    pollfd waiting{pipe, POLLIN, 0};
    int ready = ::poll(&waiting, 1, kParentCheckMs);
    if (ready > 0) {
      char byte = 0;
      return ::read(pipe, &byte, 1) == 1;
    }
    if (::getppid() != parent) return false;
  }
}

[[noreturn]] void run_child(char* const* argv, char* const* environment, const LaunchExtras& extras,
                            int release_pipe, int error_pipe, pid_t parent) {
  ::setpgid(0, 0);
  reset_signals();
  for (int fd : extras.inherited_fds) ::fcntl(fd, F_SETFD, 0);
  if (extras.output_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (!wait_for_release(release_pipe, parent)) ::_exit(0);
  ::execvpe(argv[0], argv, environment);
  int code = errno;
  ssize_t ignored = ::send(error_pipe, &code, sizeof code, MSG_NOSIGNAL);
  (void)ignored;  // nothing is left to tell it to
  ::_exit(code == ENOENT ? kCommandNotFound : kCannotExecute);
}

Error exec_error(const std::string& command, int code) {
  errno = code;
  Error error = fail_errno("cannot run {}", command).error();
  bool is_path = command.find('/') != command.npos;
  if (code == ENOENT && !is_path) {
    error.what = fmt::format("command not found: {}", command);
    error.remedy = "give the path of the program, for example ./" + command;
  } else if (code == EACCES) {
    error.remedy = fmt::format("chmod +x {}", command);
  } else if (code == ENOEXEC) {
    error.remedy =
        fmt::format("run a script through its interpreter, for example: -- sh {}", command);
  }
  return error;
}

// Assay's own environment with the extras in place of what has their names.
std::vector<char*> environment_with(const std::vector<std::string>& extras) {
  std::vector<char*> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    auto replaced = [&](const std::string& extra) {
      return text.starts_with(std::string_view(extra).substr(0, extra.find('=') + 1));
    };
    if (std::none_of(extras.begin(), extras.end(), replaced)) all.push_back(*entry);
  }
  for (const std::string& extra : extras) all.push_back(const_cast<char*>(extra.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

Result<LaunchedProcess> LaunchedProcess::start(const std::vector<std::string>& argv,
                                               const LaunchExtras& extras) {
  if (argv.empty() || argv[0].empty()) return fail("there is no command to run");
  auto release = make_pipe();
  if (!release) return std::unexpected(release.error());
  auto errors = make_pipe();
  if (!errors) return std::unexpected(errors.error());

  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = environment_with(extras.environment);

  pid_t parent = ::getpid();
  sigset_t all, before;
  sigfillset(&all);
  // No handler of Assay may run in the child between fork and the reset of its signals.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = ::fork();
  if (pid == 0) {
    // Its own copy of the write end would hide Assay's death.
    ::close(release->write.get());
    run_child(arguments.data(), environment.data(), extras, release->read.get(),
              errors->write.get(), parent);
  }
  int fork_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    errno = fork_errno;
    return fail_errno("cannot start a process for {}", argv[0]);
  }
  ::setpgid(pid, pid);  // both sides set it, so that it holds whoever comes first

  LaunchedProcess launched;
  launched.pid_ = pid;
  launched.command_ = argv[0];
  launched.release_pipe_ = std::move(release->write);
  launched.exec_error_ = std::move(errors->read);
  return launched;
}

LaunchedProcess::LaunchedProcess(LaunchedProcess&& other) noexcept {
  *this = std::move(other);
}

LaunchedProcess& LaunchedProcess::operator=(LaunchedProcess&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  pid_ = std::exchange(other.pid_, 0);
  released_ = other.released_;
  gave_terminal_ = std::exchange(other.gave_terminal_, false);
  release_pipe_ = std::move(other.release_pipe_);
  exec_error_ = std::move(other.exec_error_);
  command_ = std::move(other.command_);
  status_ = other.status_;
  return *this;
}

LaunchedProcess::~LaunchedProcess() {
  abandon();
}

void LaunchedProcess::abandon() {
  take_terminal_back();
  if (pid_ > 0 && !released_ && !status_) {
    ::kill(pid_, SIGKILL);  // still our own code: the command never ran
    reap(0);
  }
  pid_ = 0;
}

Result<void> LaunchedProcess::release() {
  if (released_) return {};
  char go = 1;
  ssize_t written = 0;
  do {
    written = ::send(release_pipe_.get(), &go, 1, MSG_NOSIGNAL);
  } while (written < 0 && errno == EINTR);
  if (written != 1) return fail_errno("the process waiting to run {} was killed", command_);
  released_ = true;
  release_pipe_.reset();
  int code = 0;
  ssize_t count = 0;
  do {
    count = ::read(exec_error_.get(), &code, sizeof code);
  } while (count < 0 && errno == EINTR);
  exec_error_.reset();
  if (count != sizeof code) return {};
  wait();
  return std::unexpected(exec_error(command_, code));
}

std::optional<ExitStatus> LaunchedProcess::reap(int options) {
  while (!status_) {
    int raw = 0;
    pid_t found = ::waitpid(pid_, &raw, options | WUNTRACED);
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) return std::nullopt;
    if (found < 0) {
      status_ = ExitStatus{false, 0};  // reaped by someone else: how it ended cannot be known
    } else if (WIFSTOPPED(raw)) {
      give_terminal_if_wanted(WSTOPSIG(raw));
    } else if (WIFSIGNALED(raw)) {
      status_ = ExitStatus{true, WTERMSIG(raw)};
    } else {
      status_ = ExitStatus{false, WEXITSTATUS(raw)};
    }
  }
  take_terminal_back();
  return status_;
}

// A command that reads the terminal from the background is stopped by the kernel: hand it over.
void LaunchedProcess::give_terminal_if_wanted(int stop_signal) {
  if (stop_signal != SIGTTIN && stop_signal != SIGTTOU) return;
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
  if (::tcsetpgrp(STDIN_FILENO, pid_) != 0) return;
  gave_terminal_ = true;
  ::kill(-pid_, SIGCONT);
}

void LaunchedProcess::take_terminal_back() {
  if (!std::exchange(gave_terminal_, false)) return;
  // Assay is in the background now; without this the kernel would stop it for the very call.
  sigset_t ttou, before;
  sigemptyset(&ttou);
  sigaddset(&ttou, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &ttou, &before);
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::optional<ExitStatus> LaunchedProcess::poll() {
  return reap(WNOHANG);
}

ExitStatus LaunchedProcess::wait() {
  return *reap(0);
}

ExitStatus LaunchedProcess::terminate(int64_t grace_ns) {
  if (poll()) return *status_;
  ::kill(-pid_, SIGTERM);
  ::kill(-pid_, SIGCONT);  // a stopped command cannot act on the signal
  TimeNs deadline = monotonic_ns() + grace_ns;
  while (!poll() && monotonic_ns() < deadline) {
    timespec pause{0, std::min(kPollIntervalNs, std::max<int64_t>(grace_ns, 1))};
    ::nanosleep(&pause, nullptr);
  }
  if (!status_) ::kill(-pid_, SIGKILL);
  return wait();
}

}  // namespace assay::os
