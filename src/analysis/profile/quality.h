// Quality: how far a run's evidence carries. Everything missing is counted and weighted by time.
//
// In: the run's losses and notes, and the time each stack stands for. Out: Quality. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/profile/profile.h"
#include "analysis/time/thread_time.h"
#include "run/reader.h"

namespace assay::analysis {

// Shares of the time that stacks stand for; complete + by_frame_pointers + truncated + none = 1.
struct StackShares {
  int64_t time_ns = 0;  // 0: there was nothing to measure, and every share is 0
  double complete = 0;
  double by_frame_pointers = 0;  // walked by frame pointers alone: frames may be missing
  double truncated = 0;          // the walk ended before the thread's first frame
  double none = 0;               // no stack at all
  double unresolved = 0;         // the leaf function has no name
};

struct UnresolvedModule {
  std::string module;
  double share = 0;  // of on-CPU time
};

struct Quality {
  uint64_t samples = 0;
  uint64_t waits = 0;  // blocked ones and those for a CPU
  double hz = 0;       // samples per second of running time
  double hz_asked = 0;
  double sampled_share = 0;  // time the samples stand for / running time; 1 when they agree
  std::array<uint64_t, model::kLossKindCount> lost{};
  uint64_t lost_records = 0;  // of the kinds that are records
  double lost_share = 0;      // lost_records / (samples + waits + lost_records)
  StackShares on_cpu;
  StackShares off_cpu;  // of blocked time
  uint64_t waits_without_stack = 0;
  std::vector<UnresolvedModule> unresolved_modules;  // the worst few
  uint64_t orphans = 0;                              // samples and waits of no known thread
  Accounting accounting;
  OwnCost own_cost;
  bool finished = false;
  std::string end_reason;
  bool ran_to_its_end = false;             // a launched command that ended by itself
  std::vector<model::QualityNote> notes;   // the capture's own
  std::vector<model::QualityNote> limits;  // what the figures above say of the run, worst first
};

StackShares stack_shares(const CallTree& tree, const StackWeights& weights);

// The modules that unnamed leaf functions are in, by weight.
std::vector<UnresolvedModule> unresolved_modules(const CallTree& tree, const StackWeights& weights,
                                                 size_t max);

// Fills what the run's own tables say: losses, notes, how it ended, what rate was asked for.
void add_run_facts(const run::Contents& run, Quality& quality);

// What limits the run's evidence, in words; empty when nothing does.
std::vector<model::QualityNote> limits_of(const Quality& quality);

}  // namespace assay::analysis
