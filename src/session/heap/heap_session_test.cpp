// profile_heap() where it cannot begin, and what it says then. What it finds is tests/kernel's,
// which has a sampler.
#include "session/heap/heap_session.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"

namespace assay::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeapSessionTest : public ::testing::Test {
 protected:
  HeapSessionTest() {
    options_.output = dir_ / "heap.assay";
    options_.duration_ns = 0;
    options_.sampling.library = dir_ / "no_such_sampler.so";
  }
  Result<HeapOutcome> profile(std::vector<std::string> command) {
    options_.target.command = std::move(command);
    return profile_heap(options_, stop_,
                        [this](const HeapProgress& state) { phases_.push_back(state.phase); });
  }
  Error refusal(std::vector<std::string> command) {
    auto outcome = profile(std::move(command));
    EXPECT_FALSE(outcome);
    EXPECT_FALSE(std::filesystem::exists(options_.output)) << "nothing was profiled";
    return outcome ? Error{} : outcome.error();
  }

  TemporaryDirectory dir_;
  HeapOptions options_;
  std::atomic<bool> stop_{false};
  std::vector<Phase> phases_;
};

TEST_F(HeapSessionTest, ACommandThatDidNotLoadTheSamplerIsToldFromOneThatDid) {
  Error error = refusal({"/bin/sh", "-c", "exit 0"});
  EXPECT_THAT(error.what, HasSubstr("/bin/sh ended without having loaded the heap sampler"));
  EXPECT_THAT(error.remedy, HasSubstr("assay doctor"));
  EXPECT_THAT(phases_, ElementsAre(Phase::preparing));
}

TEST_F(HeapSessionTest, ACommandThatIsNotThereIsToldByName) {
  EXPECT_THAT(refusal({"/no/such/program"}).what, HasSubstr("/no/such/program"));
}

TEST_F(HeapSessionTest, StoppedBeforeTheSamplerWasThereItEndsTheCommand) {
  stop_ = true;
  Error error = refusal({"/bin/sleep", "600"});
  EXPECT_EQ(error.what, "interrupted before the program had loaded the sampler");
}

TEST_F(HeapSessionTest, AFileThatIsThereIsNotOverwrittenAndNothingIsLaunched) {
  std::ofstream(options_.output) << "precious";
  auto outcome = profile({"/bin/sh", "-c", "echo ran > '" + (dir_ / "ran") + "'"});
  ASSERT_FALSE(outcome);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
  EXPECT_TRUE(phases_.empty());
  std::ifstream in(options_.output);
  std::string text;
  in >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(HeapSessionTest, ARunningTargetThatIsNotThereNamesThisCommand) {
  options_.target.pids = {0x7ffffff0};
  Error error = refusal({});
  EXPECT_THAT(error.what, HasSubstr("2147483632"));
}

}  // namespace
}  // namespace assay::session
