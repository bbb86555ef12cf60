#include "os/sandbox/child_process.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace assay::os {
namespace {

TEST(ChildProcess, KnowsThatItIsOne) {
  auto child = ChildProcess::start("/bin/sh", {"-c", "exit ${ASSAY_CHILD:-7}"});
  ASSERT_TRUE(child) << child.error().text();
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child->pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(child->end(), "it ended with status 1");
}

TEST(ChildProcess, StartsNoChildrenItself) {
  ::setenv("ASSAY_CHILD", "1", 1);
  auto child = ChildProcess::start("/bin/true", {});
  ::unsetenv("ASSAY_CHILD");
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().what, "a child of Assay starts no children");
}

TEST(ChildProcess, AProgramThatIsNotThereIsAnError) {
  EXPECT_FALSE(ChildProcess::start("/nonexistent/program", {}));
}

}  // namespace
}  // namespace assay::os
