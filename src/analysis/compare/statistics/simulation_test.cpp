// How often comparisons find what is there, and how often what is not: many comparisons of drawn
// runs.
#include <gmock/gmock.h>

#include "analysis/compare/statistics/drawn_runs.h"
#include "base/sanitized.h"

namespace assay::analysis {
namespace {

// Rates want many rounds and are the optimised build's to show; a sanitizer sees what it looks for
// in few. Few rounds show less, so their limits are wider: of 20 comparisons in which one of twenty
// may err, more than 3 err once in sixty series; of 5 with a power of 90 %, fewer than 4 find the
// change once in twelve. (The draws are always the same, so this says what the limits mean, not how
// often the tests fail.)
constexpr int kEqualRounds = kSanitized ? 20 : 100;
constexpr int kMostAlarms = kSanitized ? 3 : 5;
constexpr int kPowerRounds = kSanitized ? 5 : 20;
constexpr int kLeastFound = kSanitized ? 4 : 18;

TEST(Compare, FindsTenPercentInTenRuns) {
  int found = 0;
  for (int i = 0; i < kPowerRounds; ++i) {
    Comparison out = Drawn(100 + static_cast<uint64_t>(i))
                         .comparison(kServer, with({"main", "serve", "lookup"}, 1.1), 10);
    found += change_of(out, "lookup") != nullptr;
  }
  EXPECT_GE(found, kLeastFound) << "power of 90 %";
}

// The machine's speed is the same for all functions of a run, so it must not hide one of them.
TEST(Compare, FindsTenPercentWhileTheMachineVariesByAsMuch) {
  int found = 0, wrong = 0;
  for (int i = 0; i < kPowerRounds; ++i) {
    Comparison out = Drawn(200 + static_cast<uint64_t>(i), 0.1)
                         .comparison(kServer, with({"main", "serve", "lookup"}, 1.1), 10);
    found += change_of(out, "lookup") != nullptr;
    wrong += change_of(out, "parse") != nullptr || change_of(out, "escape") != nullptr;
    EXPECT_TRUE(out.yardstick.used);
  }
  EXPECT_GE(found, kLeastFound) << "power of 90 %";
  EXPECT_LE(wrong, 1) << "what did not change is not blamed";
}

int alarms_between_equal_sides(double machine, int runs) {
  int alarms = 0;
  for (int i = 0; i < kEqualRounds; ++i) {
    Comparison out =
        Drawn(500 + static_cast<uint64_t>(i), machine).comparison(kServer, kServer, runs);
    bool any = !out.changes.empty();
    for (const Measure& measure : out.measures)
      any = any || measure.outcome == Outcome::higher || measure.outcome == Outcome::lower;
    alarms += any;
  }
  return alarms;
}

// Any finding at all counts. 5 % of 100 are 5; the promise is at most that many in the long run.
TEST(Compare, FindsNothingBetweenEqualSides) {
  EXPECT_LE(alarms_between_equal_sides(0.02, 10), kMostAlarms);
}
TEST(Compare, FindsNothingBetweenEqualSidesOnANoisyMachine) {
  EXPECT_LE(alarms_between_equal_sides(0.1, 10), kMostAlarms);
}
TEST(Compare, FindsNothingBetweenEqualSidesOfFewRuns) {
  EXPECT_LE(alarms_between_equal_sides(0.05, 3), kMostAlarms);
}

}  // namespace
}  // namespace assay::analysis
