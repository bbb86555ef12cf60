#include "os/process/clock_offset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/fake_tree.h"

namespace assay::os {
namespace {

TEST(ClockOffset, IsTheDifferenceOfTwoNamespaces) {
  FakeTree tree;
  add_process(tree, {.pid = 77});
  tree.write("77/timens_offsets", "monotonic    30000000         5\nboottime  1 2\n");
  tree.write("self/timens_offsets", "monotonic           0         0\nboottime  0 0\n");
  EXPECT_EQ(clock_ahead_ns(ProcFs(tree.root()), 77).value(), 30'000'000 * kNsPerSecond + 5);
  tree.write("77/timens_offsets", "monotonic          -3         0\n");
  EXPECT_EQ(clock_ahead_ns(ProcFs(tree.root()), 77).value(), -3 * kNsPerSecond);
}

TEST(ClockOffset, IsNothingWhereThereIsNone) {
  FakeTree tree;
  add_process(tree, {.pid = 77});
  EXPECT_EQ(clock_ahead_ns(ProcFs(tree.root()), 77).value(), 0) << "an older kernel";
  for (const char* text : {"", "monotonic", "monotonic x y", "monotonic 9223372036854775807 0"}) {
    tree.write("77/timens_offsets", text);
    EXPECT_EQ(clock_ahead_ns(ProcFs(tree.root()), 77).value(), 0) << text;
  }
  EXPECT_FALSE(clock_ahead_ns(ProcFs(tree.root()), 78)) << "there is no such process";
}

TEST(ClockOffset, OfOurselvesIsNothing) {
  EXPECT_EQ(clock_ahead_ns(ProcFs(), ::getpid()).value(), 0);
}

}  // namespace
}  // namespace assay::os
