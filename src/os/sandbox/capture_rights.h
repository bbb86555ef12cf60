// The rights that captures need: to begin, to go on, and by feature.
//
// One table says for each capability what it is for and whether a capture that runs still needs it.
// give_up_rights() drops everything else for good: from this thread, from those that it starts, and
// from every program that is run later, which cannot gain rights again. Another table says which
// capabilities a feature needs at least, for `assay doctor` and docs/security.md. Threads:
// give_up_rights() is called while there is one. Failures: an Error; then nothing is certain, and the
// capture must not go on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace assay::os {

struct KeptRight {
  int capability = 0;  // its number in linux/capability.h
  const char* name = "";
  const char* reason = "";
};

// What a capture that runs still needs.
std::span<const KeptRight> kept_rights();
// As a bit set. CAP_SYS_ADMIN is among them where a process of `pids` has a network namespace of its
// own, whose sockets are counted, on kernels before 5.9, which have few others, and where
// kernel.perf_event_paranoid is 3.
uint64_t kept_rights_mask(const std::vector<pid_t>& pids);

Result<void> give_up_rights(const std::vector<pid_t>& pids);

// The least that a feature needs.
struct FeatureRights {
  const char* feature = "";
  std::vector<int> capabilities;
  const char* without = "";  // what is there without them
};
std::span<const FeatureRights> feature_rights();
std::string capability_text(int capability);  // "CAP_PERFMON"

}  // namespace assay::os
