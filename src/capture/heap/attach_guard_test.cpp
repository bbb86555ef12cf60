#include "capture/heap/attach_guard.h"

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::capture {
namespace {

TEST(AttachGuard, HandsOverWhatTheWorkFound) {
  auto result = run_guarded([](const IsAbandoned& is_abandoned) -> Result<GuardedResult> {
    UniqueFd file(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
    return GuardedResult{{is_abandoned() ? -1 : 4711, true}, std::move(file)};
  });
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->pause.ns, 4711);
  EXPECT_TRUE(result->pause.at_malloc);
  std::array<char, 32> name{};
  // A file of the guard's own, under its own name; gone with it or still readable.
  ASSERT_TRUE(result->memory.valid());
  EXPECT_LT(::read(result->memory.get(), name.data(), name.size()), 32);
}

TEST(AttachGuard, HandsOverErrorsWhole) {
  auto result = run_guarded([](const IsAbandoned&) -> Result<GuardedResult> {
    return fail_with_remedy("it is traced", "end the debugger", EBUSY);
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "it is traced");
  EXPECT_EQ(result.error().remedy, "end the debugger");
  EXPECT_EQ(result.error().code, EBUSY);
}

TEST(AttachGuard, SaysSoWhenItsProcessIsGone) {
  auto result = run_guarded([](const IsAbandoned&) -> Result<GuardedResult> { _exit(1); });
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("ended before its work was done"), std::string::npos);
}

// What `pkill -f` looks at: nothing of the caller's command line, which the caller keeps.
TEST(AttachGuard, HasANameOfItsOwn) {
  auto line_of_self = [] {
    std::ifstream in("/proc/self/cmdline", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string before = line_of_self();
  auto result = run_guarded([&](const IsAbandoned&) -> Result<GuardedResult> {
    return fail("{}", std::string(line_of_self().c_str()));
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, kGuardName);
  EXPECT_EQ(line_of_self(), before);
}

// The caller is killed with its whole process group in the middle of the work: the work goes on to
// its end, and knows.
TEST(AttachGuard, FinishesWhenItsCallerIsKilled) {
  std::array<int, 2> begun{}, told{};
  ASSERT_EQ(::pipe(begun.data()), 0);
  ASSERT_EQ(::pipe(told.data()), 0);
  pid_t caller = ::fork();
  if (caller == 0) {
    setpgid(0, 0);
    // Its own descriptors are closed in the guard: these are passed by their numbers in /proc.
    std::string path_begun = "/proc/" + std::to_string(getppid()) + "/fd/";
    std::string path_told = path_begun + std::to_string(told[1]);
    path_begun += std::to_string(begun[1]);
    (void)run_guarded([&](const IsAbandoned& is_abandoned) -> Result<GuardedResult> {
      UniqueFd out(::open(path_told.c_str(), O_WRONLY));
      UniqueFd start(::open(path_begun.c_str(), O_WRONLY));
      (void)!::write(start.get(), "b", 1);
      for (int i = 0; i < 5000 && !is_abandoned(); ++i) usleep(1000);
      (void)!::write(out.get(), is_abandoned() ? "a" : "n", 1);
      return GuardedResult{};
    });
    _exit(0);
  }
  char letter = 0;
  ASSERT_EQ(::read(begun[0], &letter, 1), 1);
  ASSERT_EQ(::kill(-caller, SIGKILL), 0);
  ASSERT_EQ(::waitpid(caller, nullptr, 0), caller);
  ASSERT_EQ(::read(told[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'a');
  for (int end : {begun[0], begun[1], told[0], told[1]}) ::close(end);
}

}  // namespace
}  // namespace assay::capture
