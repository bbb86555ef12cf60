#include "session/load/ab.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"

namespace assay::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.directory = directory_.path();
    options_.record.duration_ns = 0;
    options_.runs = 2;
  }
  Result<void> run() {
    return ab(
        options_, stop_, [](const AbRun&, const RecordProgress&) {},
        [this](const AbRun& run) { finished_.push_back(run); });
  }

  // Load by a command, at a port that nobody listens on (discard).
  void drive() {
    options_.record.load.what = "sleep 60";
    options_.record.load.ready_port = 9;
  }

  TemporaryDirectory directory_;
  AbOptions options_;
  std::atomic<bool> stop_{false};
  std::vector<AbRun> finished_;
};

TEST(Abba, BothVariantsComeFirstAsOften) {
  std::vector<int> order;
  for (int n = 0; n < 8; ++n) order.push_back(abba_variant(n));
  EXPECT_THAT(order, ElementsAre(0, 1, 1, 0, 0, 1, 1, 0));
}

TEST_F(AbTest, AServerThatDiesIsNamedWithWhatItSaid) {
  options_.commands[0] = {"/bin/sh", "-c", "echo cannot bind; exit 5"};
  options_.commands[1] = {"/bin/true"};
  drive();
  options_.record.load.ready_timeout_ns = 20 * kNsPerSecond;
  options_.record.duration_ns = kNsPerSecond;
  auto out = run();
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().what, HasSubstr("variant A, run 1"));
  EXPECT_THAT(out.error().what, HasSubstr("ended before it answered"));
  EXPECT_THAT(out.error().what, HasSubstr("it said: cannot bind"));
  EXPECT_TRUE(finished_.empty());
}

TEST_F(AbTest, AServerThatNeverListensIsGivenUp) {
  options_.commands[0] = {"/bin/sleep", "60"};
  options_.commands[1] = {"/bin/sleep", "60"};
  drive();
  options_.record.load.ready_timeout_ns = kNsPerSecond / 2;
  options_.record.duration_ns = kNsPerSecond;
  auto out = run();
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().what, HasSubstr("not ready within"));
}

TEST_F(AbTest, StopKeepsWhatIsThere) {
  stop_ = true;
  options_.commands[0] = options_.commands[1] = {"/bin/true"};
  EXPECT_TRUE(run());
  EXPECT_TRUE(finished_.empty());
}

}  // namespace
}  // namespace assay::session
