// The stages of a capture joined, over this very program.
#include "session/record/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "evidence/testing/fake_sink.h"

extern "C" [[gnu::noinline]] int stages_test_landmark(int value) {
  return value + 1;
}

namespace assay::session {
namespace {

using ::testing::Contains;

class StagesTest : public ::testing::Test {
 protected:
  pid_t self_ = getpid();
  os::ProcFs proc_;
  evidence::testing::FakeSink sink_;
  CaptureOptions options_;
  std::vector<std::string> mapped_;
  Stages stages_{options_, "", proc_, sink_,
                 [this](pid_t, const model::Mapping&, const model::Module& module) {
                   mapped_.push_back(module.path);
                 }};
};

TEST_F(StagesTest, AnAddressBecomesANamedFrame) {
  stages_.spaces.load(self_);
  std::vector<unwind::UserFrame> frames{
      {reinterpret_cast<uint64_t>(&stages_test_landmark) + 4, false}};
  model::StackId stack =
      stages_.stacks.build_from_addresses(self_, frames, model::StackEnd::complete, 1);
  stages_.finish(false, {});
  model::FrameId frame = sink_.stacks.at(stack).frame;
  EXPECT_THAT(sink_.names[frame], Contains("stages_test_landmark"));
}

TEST_F(StagesTest, ModulesComeOnceAndInTheOrderOfTheirIds) {
  stages_.spaces.load(self_);
  size_t modules = sink_.modules.size();
  EXPECT_GT(modules, 3u) << "the kernel, the markers, this program and its C library";
  for (size_t i = 0; i < modules; ++i) EXPECT_EQ(sink_.modules[i].id.value, i);
  stages_.spaces.load(self_);
  EXPECT_EQ(sink_.modules.size(), modules);
  EXPECT_THAT(mapped_, Contains(*proc_.exe(self_)));
}

TEST_F(StagesTest, MappingsAreThoseOfProcessesThatAreKnown) {
  stages_.spaces.load(self_);
  EXPECT_TRUE(sink_.mappings.empty()) << "it is not the target's yet";
  stages_.tasks.adopt_launched(self_, "test", 1);
  stages_.spaces.load(self_);
  ASSERT_FALSE(sink_.mappings.empty());
  EXPECT_EQ(sink_.mappings[0].first, *stages_.tasks.process(self_));
}

TEST_F(StagesTest, TasksTellWhoAThreadIsAndTheRegisterHearsOfIt) {
  stages_.tasks.adopt_launched(self_, "test", 1);
  ASSERT_TRUE(stages_.tasks.find(self_));
  EXPECT_EQ(stages_.tasks.find(self_)->pid, self_);
  EXPECT_FALSE(stages_.tasks.find(0x7ffffff0));
  EXPECT_FALSE(stages_.tasks.process(0x7ffffff0));
  EXPECT_EQ(stages_.tasks.process_count(), 1u);
  ASSERT_EQ(sink_.processes.size(), 1u);
  ASSERT_EQ(sink_.threads.size(), 1u);
  stages_.tasks.on_fork(self_, self_, self_, 0x7ffffff1, 2);
  ASSERT_EQ(sink_.threads.size(), 2u);
  EXPECT_EQ(stages_.tasks.find(0x7ffffff1)->thread, sink_.threads[1].id);
  stages_.tasks.on_comm(0x7ffffff1, "worker-1");
  EXPECT_EQ(sink_.threads.back().name, "worker-1");
  stages_.tasks.on_exit(self_, 0x7ffffff1, 3);
  EXPECT_FALSE(stages_.tasks.find(0x7ffffff1));
  EXPECT_EQ(sink_.threads.back().end_ns, 3);
}

}  // namespace
}  // namespace assay::session
