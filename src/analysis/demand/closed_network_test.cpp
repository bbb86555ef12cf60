#include "analysis/demand/closed_network.h"

#include <gtest/gtest.h>

namespace assay::analysis {
namespace {

TEST(ClosedNetwork, OneCustomerNeverQueues) {
  EXPECT_NEAR(solve({1, 0.005, {{0.002, 1}, {0.003, 0}}}), 100, 1e-6);
}

TEST(ClosedNetwork, ManyCustomersAreBoundByTheSlowestServer) {
  double per_s = solve({1000, 0, {{0.002, 1}, {0.001, 1}}});
  EXPECT_GT(per_s, 490);
  EXPECT_LE(per_s, 500);
  EXPECT_NEAR(solve({1000, 0, {{0.002, 4}, {0.0001, 1}}}), 2000, 20);
}

// Exact mean value analysis of two equal queues: X = N / (D (N + 1)).
TEST(ClosedNetwork, IsNearTheExactSolution) {
  for (double customers : {2.0, 4.0, 16.0}) {
    double exact = customers / (0.01 * (customers + 1));
    EXPECT_NEAR(solve({customers, 0, {{0.01, 1}, {0.01, 1}}}), exact, 0.04 * exact) << customers;
  }
}

TEST(ClosedNetwork, NobodyQueuesForADelay) {
  EXPECT_NEAR(solve({50, 0, {{0.01, 0}}}), 5000, 1e-3);
}

// Held while other demands are served: with one server they are served one after the other.
TEST(ClosedNetwork, AQueueAloneLimitsWhatIsServedElsewhere) {
  double per_s = solve({64, 0, {{0.001, 0}, {0.001, 1, true}}});
  EXPECT_GT(per_s, 900);
  EXPECT_LT(per_s, 1001);
}

TEST(ClosedNetwork, WithoutDemandsThereIsNoThroughput) {
  EXPECT_EQ(solve({4, 0, {}}), 0);
}

}  // namespace
}  // namespace assay::analysis
