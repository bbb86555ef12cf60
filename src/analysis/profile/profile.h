// Profiles: samples and waits aggregated by function and by call path.
//
// On-CPU: self is the time a function itself ran, total the time it or anything it called ran; a
// function that recurs in one stack counts once. Shares carry 95 % intervals. Off-CPU: the blocked
// time of each distinct path and kind, as a distribution; run-queue time is not blocking and is
// left out. In: samples and placed waits, one pass each. Out: rows, heaviest first, ties in the
// order of the run file. `tree` must outlive the builders. Not thread-safe. Failures: none.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/time/durations.h"
#include "analysis/interval.h"
#include "analysis/time/thread_time.h"

namespace assay::analysis {

struct HotFunction {
  std::string name;
  std::string module;
  std::string file;
  uint32_t line = 0;
  CodeKind kind = CodeKind::user;
  bool named = true;
  int64_t self_ns = 0;
  int64_t total_ns = 0;
  uint64_t self_samples = 0;
  uint64_t total_samples = 0;
  Estimate self;   // shares of all on-CPU time selected
  Estimate total;  // these overlap: a caller's total holds its callees'
};

struct HotPath {
  std::vector<FrameText> frames;  // leaf first
  int64_t time_ns = 0;
  uint64_t samples = 0;
  Estimate share;
};

struct OnCpuProfile {
  int64_t time_ns = 0;  // what the samples stand for
  uint64_t samples = 0;
  double effective_samples = 0;
  std::vector<HotFunction> functions;  // by self time
  std::vector<HotPath> paths;
};

struct PoolShare {
  std::string pool;
  int64_t time_ns = 0;
};

struct WaitSummary {
  BlockKind kind = BlockKind::unknown;
  std::vector<FrameText> frames;  // leaf first; empty when no stack was taken
  int64_t total_ns = 0;
  uint64_t count = 0;
  int64_t mean_ns = 0;
  int64_t p99_ns = 0;
  int64_t max_ns = 0;
  uint64_t cut = 0;              // waits seen only in part: they lasted at least as long as counted
  std::vector<PoolShare> pools;  // pools whose threads waited, longest first
  bool idle = false;             // waited for work
};

struct OffCpuProfile {
  int64_t time_ns = 0;
  uint64_t waits = 0;
  int64_t idle_ns = 0;  // of time_ns
  std::vector<WaitSummary> paths;
};

// The blocked time of one path and kind.
struct WaitWeight {
  PathIndex path = 0;
  BlockKind kind = BlockKind::unknown;
  bool idle = false;
  int64_t ns = 0;
  uint64_t count = 0;
  model::StackId heaviest;
};

// Weight per stack of the run: what quality.h measures shares with.
using StackWeights = std::vector<int64_t>;

// On-CPU time that ends in one path.
struct PathWeight {
  PathIndex path = 0;
  int64_t ns = 0;
  uint64_t samples = 0;
  model::StackId heaviest;  // the stack that stands for the path
};

class OnCpuBuilder {
 public:
  explicit OnCpuBuilder(const CallTree& tree);
  void add(const model::Sample& sample);
  OnCpuProfile finish(size_t max_functions, size_t max_paths) const;
  const StackWeights& weights() const { return ns_; }
  // Only paths with samples, in order of path.
  std::vector<PathWeight> path_weights() const;
  double effective() const;  // as many equal samples would say as much

 private:
  std::vector<HotFunction> functions(const OnCpuProfile& profile, size_t max) const;
  std::vector<HotPath> paths(const OnCpuProfile& profile, size_t max) const;

  const CallTree& tree_;
  StackWeights ns_;                // by stack
  std::vector<uint64_t> samples_;  // by stack
  double sum_squared_ = 0;
};

class OffCpuBuilder {
 public:
  OffCpuBuilder(const CallTree& tree, const run::Contents& run);
  void add(const model::Wait& wait, BlockKind kind, bool idle, const PlacedWait& placed);
  OffCpuProfile finish(size_t max_paths) const;
  const StackWeights& weights() const { return ns_; }
  // Of these pools only, in order of first sight.
  std::vector<WaitWeight> wait_weights(const std::set<std::string>& pools) const;

 private:
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  struct Slot {
    PathIndex path = 0;
    BlockKind kind = BlockKind::unknown;
    bool idle = false;
    uint32_t next = kNoSlot;  // of the same path and another kind
    model::StackId heaviest;  // the stack that stands for the path
    Durations durations;
    uint64_t cut = 0;
    std::vector<std::pair<uint32_t, int64_t>> pools;
  };
  Slot& slot_of(model::StackId stack, BlockKind kind, bool idle);
  void add_pool(Slot& slot, uint32_t pool, int64_t ns) const;

  const CallTree& tree_;
  StackWeights ns_;  // by stack
  std::vector<uint32_t> pool_of_thread_;
  std::vector<std::string> pools_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> first_slot_;  // by path
};

}  // namespace assay::analysis
