// WalkCache: recent walks of each thread, to answer equal samples exactly and to continue stacks
// whose copy ended.
//
// Exact answer: the same pc, sp and used registers, the same code, and every stack word the earlier
// walk read is equal, so walking again would read the same and give the same. Join: an earlier walk
// passed through the same frames at the same stack pointers as the last ones of a truncated walk;
// its outer frames continue it. Two frames must agree in both values (addresses alone repeat in
// recursion), and the result says it was joined. Of code that a signal interrupted on another stack
// only one frame is known: an earlier walk must have begun in it, with equal pc, sp and
// callee-saved registers, which is usual where the signal ended a blocking system call. Bounded:
// kWays walks per thread, kMaxBytes in all; the threads longest unused go first.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include <sys/types.h>

#include "unwind/walk.h"

namespace assay::unwind {

class WalkCache {
 public:
  static constexpr size_t kWays = 8;
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // A walk that answers `raw`; null when none does.
  const Walk* find(const RawStack& raw, uint32_t code_version);
  // The thread's least recently used walk, to be filled; call stored() when that is done.
  Walk& victim(pid_t tid);
  // Continues `walk`, whose copy ended, from an earlier walk of the same thread.
  bool join(pid_t tid, Walk& walk, uint32_t code_version);
  // Continues `walk`, which ended in what a signal interrupted on another stack, from an earlier
  // walk of the same thread that began there.
  bool join_interrupted(pid_t tid, Walk& walk, uint32_t code_version);
  void stored(pid_t tid, Walk& walk, uint32_t code_version);
  void forget(pid_t tid);
  size_t bytes() const { return bytes_; }

 private:
  struct Thread {
    std::array<uint64_t, kWays> ips{}, sps{}, last_used_at{};  // of `walks`, close together
    std::array<Walk, kWays> walks;
    uint64_t last_used = 0;
    size_t bytes = sizeof(Thread);
  };
  Thread* known(pid_t tid);  // null when nothing is kept of it
  void shrink(pid_t keep);

  std::unordered_map<pid_t, Thread> threads_;
  pid_t last_tid_ = -1;  // samples come in runs of one thread
  Thread* last_thread_ = nullptr;
  uint64_t clock_ = 0;
  size_t bytes_ = 0;
  size_t victim_bytes_ = 0;
};

}  // namespace assay::unwind
