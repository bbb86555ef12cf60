#include "evidence/stacks/frame_namer.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/testing/fake_sink.h"
#include "evidence/testing/fake_stages.h"

namespace assay::evidence {
namespace {

using ::testing::ElementsAre;

class FrameNamerTest : public ::testing::Test {
 protected:
  testing::FakeSink sink_;
  testing::FakeSymbolizer symbolizer_;
};

TEST_F(FrameNamerTest, EveryFrameIsNamedOnceByTheEnd) {
  symbolizer_.name({1}, 0x10, "main");
  FrameNamer namer(symbolizer_, sink_);
  namer.add({0}, {{1}, 0x10});
  namer.add({1}, {{1}, 0x20});
  namer.finish();
  EXPECT_THAT(sink_.names[{0}], ElementsAre("main"));
  EXPECT_THAT(sink_.names[{1}], ElementsAre("32")) << "what has no symbol is called by its place";
  namer.finish();
  EXPECT_EQ(sink_.names.size(), 2u);
}

TEST_F(FrameNamerTest, CodeMadeAtRunTimeIsNamedAgainWhenItsNameCame) {
  symbolizer_.expect_late_names();
  symbolizer_.name({1}, 0x10, "known at once");
  FrameNamer namer(symbolizer_, sink_);
  namer.add({0}, {{1}, 0x10});
  namer.add({1}, {{1}, 0x20});
  while (symbolizer_.resolved() < 2) std::this_thread::yield();
  symbolizer_.name({1}, 0x20, "compiled");
  namer.finish();
  EXPECT_THAT(sink_.names[{0}], ElementsAre("known at once"));
  EXPECT_THAT(sink_.names[{1}], ElementsAre("32", "compiled"));
}

TEST_F(FrameNamerTest, CodeThatNeverGetsANameKeepsItsPlace) {
  symbolizer_.expect_late_names();
  FrameNamer namer(symbolizer_, sink_);
  namer.add({0}, {{1}, 0x20});
  namer.finish();
  EXPECT_THAT(sink_.names[{0}], ElementsAre("32"));
}

TEST_F(FrameNamerTest, DataThatHasANameIsNamed) {
  symbolizer_.name_data({2}, 0x500, "table_lock");
  FrameNamer namer(symbolizer_, sink_);
  namer.add_data({{3}, 0x7f00, ""}, {{2}, 0x500});
  namer.add_data({{3}, 0x8f00, ""}, {{2}, 0x600});
  namer.finish();
  ASSERT_EQ(sink_.data_names.size(), 1u) << "the other lies in no symbol";
  EXPECT_EQ(sink_.data_names[0].name, "table_lock");
  EXPECT_EQ(sink_.data_names[0].process.value, 3u);
  EXPECT_EQ(sink_.data_names[0].address, 0x7f00u);
}

TEST_F(FrameNamerTest, FramesMayComeFromSeveralThreads) {
  constexpr uint32_t kThreads = 4, kFrames = 500;
  FrameNamer namer(symbolizer_, sink_);
  std::vector<std::jthread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&namer, thread] {
      for (uint32_t i = 0; i < kFrames; ++i) namer.add({thread * kFrames + i}, {{1}, i});
    });
  }
  threads.clear();
  namer.finish();
  EXPECT_EQ(sink_.names.size(), kThreads * kFrames);
}

}  // namespace
}  // namespace assay::evidence
