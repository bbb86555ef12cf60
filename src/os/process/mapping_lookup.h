// MappingLookup: which mapping of a process an address lies in, quickly.
//
// The kernel is asked for that one mapping where it can be (from Linux 6.11 on); elsewhere all of
// them are read, which takes a millisecond for a process with hundreds of threads. Threads: one.
// Failures: a process that is gone or may not be looked at has no mappings.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "os/process/procfs.h"

namespace assay::os {

class MappingLookup {
 public:
  MappingLookup(const ProcFs& proc, pid_t pid);
  // Of what the kernel is asked for, only addresses, permissions and the path are known.
  std::optional<MapsEntry> at(uint64_t address);

 private:
  enum class Answer : uint8_t { found, none, cannot };
  Answer ask(uint64_t address, MapsEntry& entry) const;

  const ProcFs& proc_;
  pid_t pid_;
  UniqueFd maps_;
  std::optional<std::vector<MapsEntry>> all_;  // once the kernel could not be asked
};

}  // namespace assay::os
