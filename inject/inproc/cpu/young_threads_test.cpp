// The account of young threads' CPU time: nothing is lost, and no thread is preferred.
#include "inject/inproc/cpu/young_threads.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <time.h>

namespace assay::inproc {
namespace {

constexpr int64_t kPeriodNs = 10'000'000, kTickNs = 4'000'000;

constexpr OwedTime::Rate kRate{kPeriodNs, kTickNs};
constexpr uint64_t kLikely = 0, kUnlikely = ~uint64_t{0};

TEST(OwedTime, OneTickInSoManyIsSampledByChance) {
  OwedTime owed;
  EXPECT_EQ(owed.take(kTickNs, kRate, kUnlikely), 0);
  EXPECT_EQ(owed.owed_ns(), kTickNs);
  EXPECT_EQ(owed.take(kTickNs, kRate, kLikely), 1);
  EXPECT_EQ(owed.owed_ns(), 2 * kTickNs - kPeriodNs);
}

TEST(OwedTime, WhatIsOwedIsRepaidInTheEndAndWhatIsPaidInAdvanceIsNotPaidTwice) {
  OwedTime owed;
  owed.add(160 * kPeriodNs);
  EXPECT_GE(owed.take(0, kRate, kUnlikely), 10);
  owed.clear();
  owed.add(-16 * kTickNs);
  EXPECT_EQ(owed.take(kTickNs, kRate, kLikely), 0);
}

TEST(OwedTime, ShortPeriodsGiveSeveralSamplesATick) {
  OwedTime owed;
  EXPECT_EQ(owed.take(kTickNs, {1'000'000, kTickNs}, kUnlikely), 4);
  EXPECT_EQ(owed.owed_ns(), 0);
}

// What one tick finds a thread at: threads begin anywhere between two ticks.
struct Seen {
  int64_t early = 0, late = 0, used_ns = 0;
};

Seen run_threads(int threads, int64_t life_ns) {
  std::mt19937_64 random(20'240'117);
  OwedTime owed;
  Seen seen;
  for (int i = 0; i < threads; ++i) {
    int64_t counted_ns = 0;
    for (int64_t at = static_cast<int64_t>(random() % kTickNs); at < life_ns; at += kTickNs) {
      int64_t samples = owed.take(at - counted_ns, kRate, random());
      counted_ns = at;
      (at < life_ns / 2 ? seen.early : seen.late) += samples;
    }
    owed.add(life_ns - counted_ns);
    seen.used_ns += life_ns;
  }
  EXPECT_EQ((seen.early + seen.late) * kPeriodNs + owed.owed_ns(), seen.used_ns);
  return seen;
}

TEST(OwedTime, ThreadsShorterThanATickGetTheirTimeAndEachHalfItsShare) {
  for (int64_t life_ns : {100'000, 2'000'000, 3'900'000, 9'000'000, 31'000'000}) {
    Seen seen = run_threads(static_cast<int>(200'000'000'000 / life_ns), life_ns);
    auto total = static_cast<double>(seen.early + seen.late);
    EXPECT_NEAR(total * kPeriodNs / static_cast<double>(seen.used_ns), 1, 0.01) << life_ns;
    // Five standard deviations of independent looks.
    EXPECT_NEAR(static_cast<double>(seen.early) / total, 0.5, 2.5 / std::sqrt(total)) << life_ns;
  }
}

TEST(YoungThreads, AThreadOfNoProfileIsNotYoung) {
  EXPECT_FALSE(young_tick().is_young);
  leave_young_thread(false);
  EXPECT_FALSE(young_tick().is_young);
}

TEST(YoungThreads, IsYoungUntilItsTimerIsAnOrdinaryOne) {
  std::thread([] {
    start_young_threads(kPeriodNs);
    ASSERT_TRUE(enter_young_thread(true));
    set_young_timer(7);
    YoungTick tick = young_tick();
    EXPECT_TRUE(tick.is_young);
    EXPECT_EQ(tick.timer, 7);
    end_youth();
    EXPECT_FALSE(young_tick().is_young);
  }).join();
}

void use_cpu(int64_t ns) {
  timespec now{};
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_sec * 1'000'000'000 + now.tv_nsec < ns);
}

TEST(YoungThreads, OneThatHasUsedMuchIsKnownAndNotYoung) {
  start_young_threads(kPeriodNs);
  std::thread([] {
    EXPECT_FALSE(is_known_thread());
    use_cpu(kYoungNs);
    EXPECT_FALSE(enter_young_thread(false));
    EXPECT_TRUE(is_known_thread());
    EXPECT_FALSE(young_tick().is_young);
  }).join();
}

// What a thread did before it was seen may have been before the profile.
TEST(YoungThreads, TimeBeforeItWasSeenIsNotCharged) {
  start_young_threads(kPeriodNs);
  std::thread([] {
    use_cpu(kYoungNs / 2);
    ASSERT_TRUE(enter_young_thread(false));
    leave_young_thread(true);
    EXPECT_LT(unseen_young_ns(), kYoungNs / 4);
  }).join();
}

TEST(YoungThreads, OneThatLeavesGivesNoMoreSamplesAndIsForgottenByTheNextProfile) {
  std::thread([] {
    start_young_threads(kPeriodNs);
    ASSERT_TRUE(enter_young_thread(true));
    leave_young_thread(true);
    EXPECT_TRUE(young_tick().is_young);
    EXPECT_EQ(young_tick().samples, 0);
    EXPECT_GT(unseen_young_ns(), 0);
    start_young_threads(kPeriodNs);
    EXPECT_FALSE(young_tick().is_young);
    EXPECT_EQ(unseen_young_ns(), 0);
  }).join();
}

}  // namespace
}  // namespace assay::inproc
