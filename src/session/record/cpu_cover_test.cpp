#include "session/record/cpu_cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeWatch final : public os::CpuWatch {
 public:
  explicit FakeWatch(std::vector<os::CpuChange>& next) : next_(next) {}
  std::vector<os::CpuChange> changes() override { return std::exchange(next_, {}); }

 private:
  std::vector<os::CpuChange>& next_;
};

class CpuCoverTest : public testing::Test {
 protected:
  std::vector<os::CpuChange> next_;
  std::vector<int> reopened_;
  bool works_ = true;
  std::map<int, uint64_t> lost_;
  std::vector<std::string> notes_;
  CpuCover cover_{std::make_unique<FakeWatch>(next_),
                  {[this](int cpu) -> Result<void> {
                     reopened_.push_back(cpu);
                     if (works_) return {};
                     return fail("no");
                   },
                   [this](int cpu, TimeNs, uint64_t samples) { lost_[cpu] += samples; },
                   [this](const model::QualityNote& note) { notes_.push_back(note.text); }},
                  10 * kNsPerMs,
                  0};
};

TEST_F(CpuCoverTest, NothingHappens) {
  cover_.look(kNsPerSecond);
  cover_.finish(2 * kNsPerSecond);
  EXPECT_TRUE(reopened_.empty());
  EXPECT_TRUE(lost_.empty());
  EXPECT_TRUE(notes_.empty());
}

TEST_F(CpuCoverTest, ACpuThatComesBackIsSampledAgain) {
  cover_.look(kNsPerSecond);
  next_ = {{1, false}};
  cover_.look(kNsPerSecond + 100 * kNsPerMs);
  EXPECT_TRUE(lost_.empty()) << "nothing runs on a CPU that is off";
  next_ = {{1, true}};
  cover_.look(kNsPerSecond + 200 * kNsPerMs);
  EXPECT_THAT(reopened_, ElementsAre(1));
  EXPECT_EQ(lost_[1], 10u) << "it may have been back since the look before";
  cover_.finish(9 * kNsPerSecond);
  EXPECT_EQ(lost_[1], 10u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("CPU 1 was taken off and brought back once"));
}

TEST_F(CpuCoverTest, OffAndOnBetweenTwoLooks) {
  next_ = {{1, false}, {1, true}, {1, false}, {1, true}};
  cover_.look(50 * kNsPerMs);
  EXPECT_THAT(reopened_, ElementsAre(1, 1));
}

TEST_F(CpuCoverTest, WithoutEventsAllOfItsTimeIsLost) {
  works_ = false;
  cover_.look(kNsPerSecond);
  next_ = {{3, true}};
  cover_.look(kNsPerSecond + 10 * kNsPerMs);
  cover_.finish(3 * kNsPerSecond);
  EXPECT_EQ(lost_[3], 200u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("CPU 3"));
}

TEST_F(CpuCoverTest, NotWhileItIsOffAgain) {
  works_ = false;
  next_ = {{3, true}};
  cover_.look(kNsPerSecond);
  next_ = {{3, false}};
  cover_.look(2 * kNsPerSecond);
  cover_.finish(9 * kNsPerSecond);
  EXPECT_EQ(lost_[3], 200u);
}

}  // namespace
}  // namespace assay::session
