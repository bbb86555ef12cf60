#include "session/load/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"

namespace assay::session {
namespace {

using ::testing::HasSubstr;

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    options_.directory = dir_.path();
    options_.levels = {1, 2};
    options_.record.target.pids = {0x7ffffff0};
  }
  Result<void> run(const std::string& load) {
    options_.record.load.what = load;
    return sweep(
        options_, stop_, [](uint32_t, const RecordProgress&) {},
        [this](const SweptLevel& level) -> Result<void> {
          levels_.push_back(level.connections);
          return {};
        });
  }
  std::string refusal(const std::string& load) {
    auto swept = run(load);
    return swept ? "not refused" : swept.error().what;
  }

  TemporaryDirectory dir_;
  SweepOptions options_;
  std::atomic<bool> stop_{false};
  std::vector<uint32_t> levels_;
};

TEST_F(SweepTest, OnlyLoadWhoseConcurrencyCanBeSetIsSwept) {
  EXPECT_THAT(refusal("wrk -c 5 http://127.0.0.1:1/"), HasSubstr("set the concurrency"));
  EXPECT_THAT(refusal("http://127.0.0.1:1/ -c 5"), HasSubstr("leave -c out"));
  EXPECT_THAT(refusal("http://127.0.0.1:1/ --connections=5"),
              HasSubstr("leave --connections=5 out"));
  EXPECT_THAT(refusal("http://127.0.0.1:1/ --rate 5"), HasSubstr("closed loop"));
  EXPECT_THAT(refusal("http://127.0.0.1:1/ --rate=5"), HasSubstr("closed loop"));
  EXPECT_TRUE(levels_.empty());
}

TEST_F(SweepTest, ATargetThatIsNotThereEndsItAtTheFirstLevel) {
  EXPECT_NE(refusal("http://127.0.0.1:1/"), "not refused");
  EXPECT_TRUE(levels_.empty());
}

TEST_F(SweepTest, StoppedItKeepsTheLevelsItHas) {
  stop_ = true;
  EXPECT_TRUE(run("http://127.0.0.1:1/"));
  EXPECT_TRUE(levels_.empty());
}

TEST_F(SweepTest, AServerThatCannotBeStartedIsToldByName) {
  options_.record.target.pids.clear();
  options_.record.target.command = {"/no/such/server"};
  EXPECT_THAT(refusal("http://127.0.0.1:1/"), HasSubstr("/no/such/server"));
}

}  // namespace
}  // namespace assay::session
