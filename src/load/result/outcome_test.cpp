#include "load/result/outcome.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace assay::load {
namespace {

TEST(Outcome, ARefusalIsWhatWillBeAnsweredAgain) {
  using enum OutcomeKind;
  EXPECT_TRUE(refuses_request(http_outcome(404)));
  EXPECT_TRUE(refuses_request(http_outcome(401)));
  EXPECT_FALSE(refuses_request(http_outcome(429))) << "later it may be taken";
  EXPECT_FALSE(refuses_request(http_outcome(503)));
  EXPECT_FALSE(refuses_request(http_outcome(200)));
  EXPECT_TRUE(refuses_request({grpc_status, 12})) << "UNIMPLEMENTED";
  EXPECT_FALSE(refuses_request({grpc_status, 14})) << "UNAVAILABLE";
  EXPECT_FALSE(refuses_request({timeout, 0}));
  EXPECT_TRUE(is_an_answer({grpc_status, 13}));
  EXPECT_FALSE(is_an_answer({grpc_status, 14}));
  EXPECT_FALSE(is_an_answer({connect, ECONNREFUSED}));
}

TEST(Outcome, WaitingHelpsOnlyWhereNobodyWasReached) {
  EXPECT_TRUE(could_not_reach({"cannot connect", "", ECONNREFUSED}));
  EXPECT_TRUE(could_not_reach({"does not answer", "", ENOTCONN}));
  EXPECT_TRUE(could_not_reach({"answers: UNAVAILABLE", "", 14}));
  EXPECT_FALSE(could_not_reach({"there is no service x.Y", "", 0}));
  EXPECT_FALSE(could_not_reach({"answers: UNIMPLEMENTED", "", 12}));
}

}  // namespace
}  // namespace assay::load
