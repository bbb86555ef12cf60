// assay stat on a real kernel: threads that start and end, intervals that do not divide the time
// evenly.
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/stat/switch_counter.h"
#include "harness.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kThreads = 50, kSleeps = 20;

void sleep_in_threads() {
  for (uint64_t i = 0; i < kThreads; ++i) {
    std::thread([] {
      for (uint64_t s = 0; s < kSleeps; ++s) usleep(100);
    }).join();
  }
}

TEST(SwitchCounter, ThreadsThatEndedKeepTheirSwitches) {
  auto counter = capture::open_switch_counter({gettid()});
  if (!counter) GTEST_SKIP() << "skipped: " << counter.error().what;
  capture::SwitchCounts before = counter->read();
  sleep_in_threads();
  capture::SwitchCounts after = counter->read();
  uint64_t voluntary = after.voluntary - before.voluntary;
  EXPECT_GE(voluntary, kThreads * kSleeps);
  // Joins, and the end of each thread, besides.
  EXPECT_LE(voluntary, kThreads * (kSleeps + 20));
}

TEST(SwitchCounter, LosingTheCpuIsInvoluntary) {
  auto counter = capture::open_switch_counter({gettid()});
  if (!counter) GTEST_SKIP() << "skipped: " << counter.error().what;
  capture::SwitchCounts before = counter->read();
  constexpr uint64_t kYields = 1000;
  // Another thread to yield to, on the same CPU.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  std::thread other([] {
    for (uint64_t i = 0; i < kYields; ++i) sched_yield();
  });
  for (uint64_t i = 0; i < kYields; ++i) sched_yield();
  other.join();
  capture::SwitchCounts after = counter->read();
  EXPECT_GE(after.involuntary - before.involuntary, kYields / 2);
  EXPECT_LT(after.voluntary - before.voluntary, kYields / 2);
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

double switches_of(const nlohmann::json& row) {
  return row.at("counters").at("context-switches").at("value").get<double>();
}

TEST(Stat, TheLastIntervalIsToldEvenWhenItIsShort) {
  if (std::string why = kernel_test::why_skipped(); !why.empty()) GTEST_SKIP() << why;
  kernel_test::Background churn(
      {kernel_test::program("thread_churn"), "--for", "20", "--per-second", "300"});
  kernel_test::Finished done =
      kernel_test::run({kernel_test::assay(), "stat", "--pid", std::to_string(churn.pid()), "--for",
                        "1s", "--interval", "300ms", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  std::vector<nlohmann::json> rows = json_lines(done.out);
  ASSERT_EQ(rows.size(), 5U) << "0.3 + 0.3 + 0.3 + 0.1 s, and the whole: " << done.out;
  double parts = 0;
  for (size_t i = 0; i < 4; ++i) parts += switches_of(rows[i]);
  EXPECT_GT(parts, 100);
  EXPECT_NEAR(parts, switches_of(rows[4]), 0.05 * parts) << "intervals add up to the whole";
}

TEST(Stat, ALoadThatIsACommandSaysWhyNothingIsPerRequest) {
  if (std::string why = kernel_test::why_skipped(); !why.empty()) GTEST_SKIP() << why;
  kernel_test::Background churn({kernel_test::program("thread_churn"), "--for", "20"});
  kernel_test::Finished done =
      kernel_test::run({kernel_test::assay(), "stat", "--pid", std::to_string(churn.pid()), "--for",
                        "300ms", "--load", "sleep 5"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("the load is a command"));
}

}  // namespace
}  // namespace assay
