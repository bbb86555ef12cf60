#include "os/process/group_guard.h"

#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::os {
namespace {

constexpr unsigned kGraceSeconds = 2;
constexpr char kDismissed = 'd';

// Runs in the forked child of a process that may have threads: system calls only.
[[noreturn]] void guard(int pipe, int other_end, pid_t group) {
  close(other_end);  // or the pipe would never end
  prctl(PR_SET_NAME, "assay-guard");
  setsid();  // out of reach of the terminal's signals, which are meant for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Descriptors of ours that stayed open here would keep pipes and files of ours alive.
  if (dup2(pipe, 0) < 0) _exit(1);
  syscall(SYS_close_range, 1u, ~0u, 0u);
  char word = 0;
  ssize_t count = -1;
  while (count < 0) count = read(0, &word, 1);
  if (count == 1 && word == kDismissed) _exit(0);
  kill(-group, SIGTERM);
  sleep(kGraceSeconds);
  kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

GroupGuard::GroupGuard(pid_t group) {
  int ends[2];
  if (group <= 0 || pipe2(ends, O_CLOEXEC) != 0) return;
  UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  pid_t child = fork();
  if (child == 0) guard(theirs.get(), ours.get(), group);
  if (child < 0) return;
  child_ = child;
  ours_ = std::move(ours);
}

GroupGuard& GroupGuard::operator=(GroupGuard&& other) noexcept {
  if (this == &other) return *this;
  dismiss();
  ours_ = std::move(other.ours_);
  child_ = std::exchange(other.child_, 0);
  return *this;
}

void GroupGuard::dismiss() {
  if (child_ == 0) return;
  (void)!write(ours_.get(), &kDismissed, 1);
  ours_.reset();
  waitpid(child_, nullptr, 0);
  child_ = 0;
}

}  // namespace assay::os
