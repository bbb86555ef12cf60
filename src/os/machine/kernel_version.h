// KernelVersion: which upstream Linux release the running kernel is made from.
//
// uname's release is not enough: Debian says "6.1.0-50" for 6.1.176, Ubuntu "6.2.0-39" for 6.2.16.
// Both tell the upstream number elsewhere (uname's version, /proc/version_signature), and that one
// is used where it is there.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace assay::os {

struct KernelVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const KernelVersion&) const = default;
  std::string text() const;
};

// `release` and `version` are uname's (/proc/sys/kernel/osrelease and version); `signature` is
// /proc/version_signature, empty where there is none. All zeros when none of them holds a number.
KernelVersion parse_kernel_version(std::string_view release, std::string_view version,
                                   std::string_view signature);
KernelVersion read_kernel_version(const std::string& proc);

// On these kernels a tracing program that reads user memory can deadlock with a page fault on the
// same CPU and lock up the whole machine: Linux 5.19 to 6.0, 6.1 before 6.1.36, 6.2, and 6.3
// before 6.3.10.
bool user_reads_may_lock_up(const KernelVersion& version);

}  // namespace assay::os
