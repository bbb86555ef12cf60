#include "os/sandbox/confine.h"

#include <csignal>
#include <utility>

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "os/sandbox/credentials.h"
#include "os/sandbox/system_call_filter.h"

namespace assay::os {
namespace {

constexpr int kLastCapability = 63;

// A limit that the user has set already, and that is lower, stays.
Result<void> set_limit(__rlimit_resource resource, uint64_t most) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return fail_errno("a resource limit cannot be read");
  most = std::min<uint64_t>(most, std::min<uint64_t>(limit.rlim_cur, limit.rlim_max));
  limit = {most, most};
  if (::setrlimit(resource, &limit) != 0) return fail_errno("a resource limit cannot be set");
  return {};
}

Result<void> become_nobody() {
  if (::geteuid() != 0) return {};
  // In a user namespace the number may not exist: then root of that namespace stays, without its
  // capabilities. There setgroups() is not allowed either.
  bool changed = ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                 ::setresuid(kNobody, kNobody, kNobody) == 0;
  if (!changed && errno != EINVAL && errno != EPERM)
    return fail_errno("the user cannot be changed");
  return {};
}

// What a program that is run later could gain. Without the right to change it, no_new_privs alone
// must do.
void empty_bounding_set() {
  for (int capability = 0; capability <= kLastCapability; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

}  // namespace

Result<void> drop_capabilities() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("new privileges cannot be ruled out");
  empty_bounding_set();
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail_errno("capabilities cannot be dropped");
  return {};
}

Result<void> become_nobody_for_good(uint64_t open_files) {
  empty_bounding_set();  // while there is still the right to
  if (auto done = become_nobody(); !done) return done;
  if (auto done = drop_capabilities(); !done) return done;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (auto [resource, most] :
       {std::pair(RLIMIT_CORE, uint64_t{0}), std::pair(RLIMIT_FSIZE, uint64_t{0}),
        std::pair(RLIMIT_NOFILE, open_files)}) {
    if (auto done = set_limit(resource, most); !done) return done;
  }
  return {};
}

Result<void> confine(const ConfineRules& rules) {
  empty_bounding_set();  // while there is still the right to
  if (auto done = become_nobody(); !done) return done;
  if (auto done = drop_capabilities(); !done) return done;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // After the user has changed, which would undo it.
  if (rules.ends_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (auto done = set_limit(RLIMIT_CORE, 0); !done) return done;
  if (auto done = set_limit(RLIMIT_NOFILE, rules.open_files); !done) return done;
  if (!rules.calls.writes) {
    if (auto done = set_limit(RLIMIT_FSIZE, 0); !done) return done;
  }
  if (kSanitized) return {};  // sanitizers need much memory and system calls of their own
  if (auto done = set_limit(RLIMIT_DATA, rules.heap_bytes); !done) return done;
  return install_filter(rules.calls);
}

}  // namespace assay::os
