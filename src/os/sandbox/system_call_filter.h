// install_filter(): from now on, the kernel answers only the system calls that computing needs.
//
// What is allowed is a list; everything else fails with EPERM. No file, process or address can be
// named, no program run, no memory made executable. AllowedCalls widens the list for one job.
// Threads: called while there is one thread, after no_new_privs. Failures: the kernel's.
#pragma once

#include "base/result.h"

namespace assay::os {

struct AllowedCalls {
  bool writes = false;    // to descriptors that it was given
  bool serves = false;    // connections of a socket that it was given
  bool connects = false;  // to a server; opens files, for reading alone
};

Result<void> install_filter(const AllowedCalls& calls);

}  // namespace assay::os
