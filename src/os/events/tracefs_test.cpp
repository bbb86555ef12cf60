#include "os/events/tracefs.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace assay::os {
namespace {

TEST(Tracefs, ParsesAFormatFile) {
  auto parsed = parse_tracepoint_format(
      "name: sched_waking\nID: 318\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
      "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
      "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, 318u);
  EXPECT_EQ(parsed->fields.at("pid").offset, 24u);
  EXPECT_EQ(parsed->fields.at("pid").size, 4u);
  EXPECT_EQ(parsed->fields.at("comm").size, 16u);
}

TEST(Tracefs, RefusesWhatIsNoFormat) {
  EXPECT_FALSE(parse_tracepoint_format(""));
  EXPECT_FALSE(parse_tracepoint_format("field:;;;offset"));
}

TEST(Tracefs, ReadsTheRealTracepointMountedOrNot) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: tracefs needs root";
  bool was_mounted = !tracefs_mount_point().empty();
  auto tracepoint = read_tracepoint("sched/sched_waking");
  if (!tracepoint) GTEST_SKIP() << "skipped: " << tracepoint.error().what;
  EXPECT_GT(tracepoint->id, 0u);
  EXPECT_TRUE(tracepoint->fields.contains("pid"));
  EXPECT_EQ(!tracefs_mount_point().empty(), was_mounted) << "the machine's mounts are left alone";
}

}  // namespace
}  // namespace assay::os
