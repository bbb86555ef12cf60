#include "os/process/group_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::os {
namespace {

// A process in a group of its own that sleeps; it is ours to end.
pid_t start_sleeper() {
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    while (true) pause();
  }
  setpgid(child, child);
  return child;
}

bool has_ended(pid_t child) {
  return waitpid(child, nullptr, WNOHANG) == child;
}

TEST(GroupGuard, EndsTheGroupWhenItsOwnerIsKilled) {
  pid_t sleeper = start_sleeper();
  pid_t owner = fork();
  if (owner == 0) {
    GroupGuard guard(sleeper);
    raise(SIGKILL);
  }
  waitpid(owner, nullptr, 0);
  int status = 0;
  ASSERT_EQ(waitpid(sleeper, &status, 0), sleeper);  // a guard that does nothing hangs here
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(GroupGuard, LeavesTheGroupWhenDismissed) {
  pid_t sleeper = start_sleeper();
  {
    GroupGuard guard(sleeper);
    GroupGuard moved(std::move(guard));
    moved.dismiss();
  }
  EXPECT_FALSE(has_ended(sleeper))
      << "dismiss waits for the guard's end, so it would be known by now";
  kill(sleeper, SIGKILL);
  waitpid(sleeper, nullptr, 0);
}

TEST(GroupGuard, GuardsNobodyByDefault) {
  GroupGuard guard;
  guard.dismiss();
  GroupGuard ours(0);  // group 0 would be our own
  ours.dismiss();
}

}  // namespace
}  // namespace assay::os
