#include "model/stack.h"

#include <gtest/gtest.h>

#include "model/module.h"

namespace assay::model {
namespace {

TEST(StackTable, SharesPrefixesAndGivesFramesBack) {
  FrameTable frames;
  StackTable stacks;
  FrameId a = frames.intern({ModuleId{0}, 0x10});
  FrameId b = frames.intern({ModuleId{0}, 0x20});
  FrameId c = frames.intern({ModuleId{1}, 0x20});
  EXPECT_EQ(frames.intern({ModuleId{0}, 0x20}), b);
  EXPECT_NE(b, c);

  StackId abc = stacks.intern(std::vector{a, b, c});
  StackId ab = stacks.intern(std::vector{a, b});
  EXPECT_EQ(stacks[abc].parent, ab);
  EXPECT_EQ(stacks.intern(std::vector{a, b, c}), abc);
  EXPECT_EQ(stacks.frames(abc), (std::vector{c, b, a}));
  EXPECT_TRUE(stacks.frames(StackId{}).empty());
}

TEST(ModuleTable, SameFileSameId) {
  ModuleTable modules;
  ModuleId one = modules.intern(ModuleKind::elf, "/bin/a", "ab");
  EXPECT_EQ(modules.intern(ModuleKind::elf, "/bin/a", "ab"), one);
  EXPECT_NE(modules.intern(ModuleKind::elf, "/bin/a", "cd"), one);
  EXPECT_NE(modules.intern(ModuleKind::anonymous, "/bin/a", "ab"), one);
  EXPECT_EQ(modules[one].path, "/bin/a");
}

TEST(StackEnd, EveryEndHasAText) {
  for (int end = 1; end < kStackEndCount; ++end) {
    EXPECT_FALSE(stack_end_text(static_cast<StackEnd>(end)).empty()) << end;
  }
}

}  // namespace
}  // namespace assay::model
