// stat() with the kernel's software counters, which a process may have of its own children.
#include "session/stat/stat.h"

#include <csignal>

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::session {
namespace {

using model::count_of;
using model::CounterId;

// Empty: they can be counted.
std::string why_not_counted() {
  const Countable countable = countable_events();
  return count_of(countable.events, CounterId::cpu_clock).problem;
}

struct Interval {
  double from_s, to_s, cpu_ns;
};

class StatOfCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = why_not_counted(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
    options.syscalls = false;
    options.duration_ns = 0;
  }
  Result<StatOutcome> count(const std::string& shell) {
    options.target.command = {"/bin/sh", "-c", shell};
    return stat(options, stop, [this](double from_s, double to_s, const model::Counts& counts) {
      intervals.push_back({from_s, to_s, count_of(counts, CounterId::cpu_clock).value});
      if (intervals.size() == stop_after) stop = true;
    });
  }

  StatOptions options;
  std::atomic<bool> stop{false};
  size_t stop_after = 0;
  std::vector<Interval> intervals;
};

constexpr const char* kBusy = "while :; do :; done";

TEST_F(StatOfCommand, ItIsCountedFromItsBeginningToItsEnd) {
  auto outcome = count("/bin/true; exit 7");
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->end, EndReason::target_exited);
  ASSERT_TRUE(outcome->launched_exit);
  EXPECT_EQ(outcome->launched_exit->exit_code(), 7);
  EXPECT_GT(count_of(outcome->counts, CounterId::cpu_clock).value, 0);
  // A shell that starts maps its pages within its first instructions; /bin/true does as well.
  EXPECT_GT(count_of(outcome->counts, CounterId::minor_faults).value, 50);
}

TEST_F(StatOfCommand, OneThatIsNotThereIsAnError) {
  options.target.command = {"/no/such/program"};
  auto outcome = stat(options, stop, [](double, double, const model::Counts&) {});
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, testing::HasSubstr("/no/such/program"));
}

TEST_F(StatOfCommand, IntervalsFollowEachOtherToTheEndOfTheTime) {
  options.duration_ns = 250 * kNsPerMs;
  options.interval_ns = 100 * kNsPerMs;
  auto outcome = count("exec sleep 3");
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->end, EndReason::time);
  EXPECT_FALSE(outcome->launched_exit) << "it goes on";
  ASSERT_FALSE(intervals.empty());
  double since = 0;
  for (const Interval& interval : intervals) {
    EXPECT_DOUBLE_EQ(interval.from_s, since);
    EXPECT_GT(interval.to_s, interval.from_s);
    since = interval.to_s;
  }
  EXPECT_GE(since, 0.25);
  EXPECT_LE(since, outcome->seconds);
}

TEST_F(StatOfCommand, InterruptedItEndsTheCommandAndSaysSo) {
  options.interval_ns = 20 * kNsPerMs;
  options.per_thread = true;
  stop_after = 2;
  auto outcome = count(kBusy);
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->end, EndReason::interrupted);
  ASSERT_TRUE(outcome->launched_exit);
  EXPECT_TRUE(outcome->launched_exit->signalled);
  ASSERT_EQ(outcome->per_thread.size(), 1U);
  EXPECT_EQ(outcome->per_thread[0].name, "sh");
  EXPECT_EQ(count_of(outcome->per_thread[0].counts, CounterId::cpu_clock).value,
            count_of(outcome->counts, CounterId::cpu_clock).value)
      << "the threads add up to the whole";
}

TEST_F(StatOfCommand, ATargetThatRanBeforeIsCountedAndLeftAlone) {
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::sched_yield();
  }
  options.target.pids = {child};
  options.duration_ns = 50 * kNsPerMs;
  auto outcome = stat(options, stop, [](double, double, const model::Counts&) {});
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it lives";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->end, EndReason::time);
  EXPECT_EQ(outcome->processes, 1u);
  EXPECT_EQ(outcome->threads, 1u);
  EXPECT_FALSE(outcome->launched_exit);
  EXPECT_GT(count_of(outcome->counts, CounterId::cpu_clock).value, 0);
  EXPECT_GE(outcome->seconds, 0.05);
}

TEST_F(StatOfCommand, ATargetThatEndsMeanwhileEndsIt) {
  pid_t child = ::fork();
  if (child == 0) {
    ::usleep(100'000);
    ::_exit(0);
  }
  options.target.pids = {child};
  auto outcome = stat(options, stop, [](double, double, const model::Counts&) {});
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->end, EndReason::target_exited);
}

TEST_F(StatOfCommand, ATargetThatIsNotThereNamesThisCommand) {
  options.target.pids = {0x7ffffff0};
  auto outcome = stat(options, stop, [](double, double, const model::Counts&) {});
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what, testing::HasSubstr("2147483632"));
}

TEST_F(StatOfCommand, LoadThatIsACommandSaysWhyThereAreNoRequests) {
  options.load.what = "sleep 600";
  options.duration_ns = 20 * kNsPerMs;
  auto outcome = count("exec sleep 600");
  ASSERT_TRUE(outcome) << outcome.error().what;
  EXPECT_EQ(outcome->requests, 0u);
  EXPECT_THAT(outcome->no_requests, testing::HasSubstr("the load is a command"));
  EXPECT_FALSE(outcome->launched_exit) << "a server that was driven is ended by us, not by itself";
}

}  // namespace
}  // namespace assay::session
