// The mark that a process leaves for the processes that it starts.
#include "inject/inproc/lifecycle/process_mark.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace assay::inproc {
namespace {

TEST(ProcessMark, ReadsWhatIsOneAndNothingElse) {
  MarkParts parts;
  ASSERT_TRUE(parse_mark("4711.0123456789abcdef.1", parts));
  EXPECT_EQ(parts.pid, 4711);
  EXPECT_TRUE(parts.is_inherited);
  EXPECT_STREQ(parts.secret, "0123456789abcdef");
  for (const char* text :
       {"", "4711", "4711.0123456789abcdef", "4711.0123456789abcde.1", "4711.0123456789abcdef0.1",
        "x.0123456789abcdef.1", "4711.0123456789abcdef.1x", "4711.0123456789abcdef.",
        "99999999999.0123456789abcdef.0", "...", "4711..1"})
    EXPECT_FALSE(parse_mark(text, parts)) << text;
}

// In this order: each step uses the mark of the one before.
TEST(ProcessMark, TellsTheFirstTheSecondCopyAndAChild) {
  unsetenv("ASSAY_PID");
  ProcessMark first = take_process_mark();
  EXPECT_EQ(first.lineage, Lineage::first);
  EXPECT_FALSE(first.is_inherited);
  std::string left = getenv("ASSAY_PID");
  EXPECT_EQ(left, std::to_string(getpid()) + "." + first.secret + ".0");
  EXPECT_EQ(take_process_mark().lineage, Lineage::repeated);
  EXPECT_EQ(getenv("ASSAY_PID"), left);

  setenv("ASSAY_PID", (std::to_string(getppid()) + ".00000000000000ff.0").c_str(), 1);
  ProcessMark child = take_process_mark();
  EXPECT_EQ(child.lineage, Lineage::started);
  EXPECT_TRUE(child.is_inherited);
  EXPECT_STREQ(child.secret, "00000000000000ff");
  EXPECT_EQ(getenv("ASSAY_PID"), std::to_string(getpid()) + ".00000000000000ff.1");
  unsetenv("ASSAY_PID");
}

}  // namespace
}  // namespace assay::inproc
