#include "analysis/locks/semaphore_locks.h"

namespace assay::analysis {
namespace {

constexpr uint64_t kFewestWakes = 20;
constexpr double kReleasedByTakers = 0.9;

}  // namespace

void SemaphoreLocks::observe(const model::Wait& wait, uint32_t process) {
  Habits& habits = semaphores_[{process, wait.arg}];
  ++habits.waits_of[wait.thread.value];
  if (wait.waker != model::Wait::kNoWaker) ++habits.wakes_from[wait.waker.value];
}

void SemaphoreLocks::decide() {
  for (auto& [key, habits] : semaphores_) {
    uint64_t wakes = 0, from_takers = 0;
    for (auto [thread, count] : habits.wakes_from) {
      wakes += count;
      if (habits.waits_of.contains(thread)) from_takers += count;
    }
    habits.is_lock = wakes >= kFewestWakes && static_cast<double>(from_takers) >=
                                                  kReleasedByTakers * static_cast<double>(wakes);
  }
}

bool SemaphoreLocks::is_lock(const model::Wait& wait, uint32_t process) const {
  auto found = semaphores_.find({process, wait.arg});
  return found != semaphores_.end() && found->second.is_lock;
}

}  // namespace assay::analysis
