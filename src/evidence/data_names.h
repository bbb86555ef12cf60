// DataNames: asks for the data symbol at each address that threads wait on, so that a global lock
// has its name in the run.
//
// In: process and address of futex waits, in time order. Out: requests to the FrameNamer, one per
// address. Threads: one owner. Failures: an address outside every module's data (the heap, a stack)
// gets no name; beyond a number of addresses that no report could show, no more are asked for.
#pragma once

#include <set>
#include <utility>

#include <sys/types.h>

#include "evidence/stacks/address_spaces.h"
#include "evidence/stacks/frame_namer.h"
#include "evidence/tasks.h"

namespace assay::evidence {

class DataNames {
 public:
  DataNames(AddressSpaces& spaces, const Tasks& tasks, FrameNamer& namer)
      : spaces_(spaces), tasks_(tasks), namer_(namer) {}

  void waited_on(pid_t pid, uint64_t address);
  void forget(pid_t pid);  // it ended or runs another program

 private:
  static constexpr size_t kMost = 20'000;

  AddressSpaces& spaces_;
  const Tasks& tasks_;
  FrameNamer& namer_;
  std::set<std::pair<pid_t, uint64_t>> asked_;
};

}  // namespace assay::evidence
