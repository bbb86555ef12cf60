#include "session/lifecycle/life_watch.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::session {
namespace {

// A process that only waits; ended and taken note of at the end at the latest.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) ::pause();
  }
  ~Sleeper() {
    end();
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  void end() { ::kill(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(LifeWatch, KnowsTheMomentInWhichTheLastOneEnded) {
  Sleeper one, other;
  LifeWatch watch;
  watch.follow({one.pid(), other.pid()});
  watch.wait(0);
  EXPECT_FALSE(watch.all_ended());
  EXPECT_EQ(watch.last_end(), 0);
  one.end();
  watch.wait(60 * kNsPerSecond);
  EXPECT_FALSE(watch.all_ended()) << "one is left";
  TimeNs before = monotonic_ns();
  other.end();
  watch.wait(60 * kNsPerSecond);
  EXPECT_TRUE(watch.all_ended()) << "nobody has waited for them yet";
  EXPECT_GE(watch.last_end(), before);
  EXPECT_LT(watch.last_end() - before, 30 * kNsPerSecond) << "it does not sleep to the end";
}

TEST(LifeWatch, ForgetsWhoIsNoLongerFollowed) {
  Sleeper one, other;
  LifeWatch watch;
  watch.follow({one.pid(), other.pid()});
  one.end();
  watch.wait(60 * kNsPerSecond);
  watch.follow({one.pid()});
  EXPECT_TRUE(watch.all_ended());
  watch.follow({});
  EXPECT_FALSE(watch.all_ended()) << "there is nobody";
}

TEST(LifeWatch, OneThatIsGoneHasEnded) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  LifeWatch watch;
  watch.follow({gone});
  EXPECT_TRUE(watch.all_ended());
}

}  // namespace
}  // namespace assay::session
