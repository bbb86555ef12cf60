// SemaphoreLocks: tells semaphores that are used as locks from those that hand work over.
//
// An interpreter's locks, and many home-made ones, are semaphores: the stack of a thread that waits
// for one is that of a thread that waits for work. What differs is who ends the wait. A lock is
// released by a thread that takes it as well; work comes from one that does not wait for it. In:
// every wait of a semaphore, with its waker. Out: whether a wait's semaphore is a lock. Without
// wake-ups in the run none is. Failures: none. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/sample.h"

namespace assay::analysis {

class SemaphoreLocks {
 public:
  void observe(const model::Wait& wait, uint32_t process);
  void decide();
  bool is_lock(const model::Wait& wait, uint32_t process) const;

 private:
  struct Habits {
    std::unordered_map<uint32_t, uint64_t> waits_of;    // by thread that waited
    std::unordered_map<uint32_t, uint64_t> wakes_from;  // by thread that ended the wait
    bool is_lock = false;
  };
  // By process and address.
  std::map<std::pair<uint32_t, uint64_t>, Habits> semaphores_;
};

}  // namespace assay::analysis
