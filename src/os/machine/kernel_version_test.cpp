#include "os/machine/kernel_version.h"

#include <gtest/gtest.h>

namespace assay::os {
namespace {

std::string parsed(std::string_view release, std::string_view version,
                   std::string_view signature = "") {
  return parse_kernel_version(release, version, signature).text();
}

TEST(KernelVersion, TheUpstreamNumberIsUsedWhereItIsTold) {
  EXPECT_EQ(parsed("6.1.0-50-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-08-01)"),
            "6.1.176");
  EXPECT_EQ(
      parsed("6.12.107+deb13-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-10-20)"),
      "6.12.107");
  EXPECT_EQ(parsed("6.2.0-39-generic", "#40~22.04.1-Ubuntu SMP",
                   "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16"),
            "6.2.16");
  EXPECT_EQ(parsed("6.18.44-fc-v490", "#1 SMP"), "6.18.44");
  EXPECT_EQ(parsed("6.1", ""), "6.1.0");
  EXPECT_EQ(parsed("", ""), "0.0.0");
}

TEST(KernelVersion, KnowsTheKernelsThatLockUp) {
  EXPECT_FALSE(user_reads_may_lock_up({5, 10, 223}));
  EXPECT_FALSE(user_reads_may_lock_up({5, 18, 19}));
  EXPECT_TRUE(user_reads_may_lock_up({5, 19, 0}));
  EXPECT_TRUE(user_reads_may_lock_up({6, 0, 12}));
  EXPECT_TRUE(user_reads_may_lock_up({6, 1, 35}));
  EXPECT_FALSE(user_reads_may_lock_up({6, 1, 36}));
  EXPECT_TRUE(user_reads_may_lock_up({6, 2, 16}));
  EXPECT_TRUE(user_reads_may_lock_up({6, 3, 9}));
  EXPECT_FALSE(user_reads_may_lock_up({6, 3, 10}));
  EXPECT_FALSE(user_reads_may_lock_up({6, 4, 0}));
  EXPECT_FALSE(user_reads_may_lock_up({6, 18, 44}));
}

}  // namespace
}  // namespace assay::os
