#include "os/sandbox/capture_rights.h"

#include <set>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace assay::os {
namespace {

uint64_t effective() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  ::syscall(SYS_capget, &header, data);
  return data[0].effective | uint64_t{data[1].effective} << 32;
}

TEST(CaptureRights, EveryRightHasItsReasonOnce) {
  std::set<int> seen;
  for (const KeptRight& right : kept_rights()) {
    EXPECT_TRUE(seen.insert(right.capability).second) << right.name;
    EXPECT_FALSE(std::string(right.reason).empty()) << right.name;
    EXPECT_EQ(capability_text(right.capability), right.name);
  }
  for (const FeatureRights& feature : feature_rights()) {
    EXPECT_FALSE(std::string(feature.without).empty()) << feature.feature;
    for (int capability : feature.capabilities)
      EXPECT_TRUE(capability_text(capability).starts_with("CAP_")) << feature.feature;
  }
}

TEST(CaptureRights, TheDangerousOnesAreNotKept) {
  uint64_t kept = kept_rights_mask({});
  for (int capability : {CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_MKNOD, CAP_NET_ADMIN,
                         CAP_SYS_TIME, CAP_SETFCAP, CAP_CHOWN, CAP_FOWNER, CAP_SYS_CHROOT})
    EXPECT_EQ(kept >> capability & 1, 0u) << capability;
}

TEST(CaptureRights, TheRestIsGivenUpForGood) {
  pid_t child = ::fork();
  if (child == 0) {
    uint64_t before = effective();
    if (!give_up_rights({})) ::_exit(1);
    if (effective() != (before & kept_rights_mask({}))) ::_exit(2);
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) ::_exit(3);
    // A program of root's would have everything again without that.
    ::execl("/bin/sh", "sh", "-c",
            "exit $(grep -c 'CapEff:.*1ffffffffff\\|CapEff:.*3fffffffff' /proc/self/status)",
            nullptr);
    ::_exit(4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace assay::os
