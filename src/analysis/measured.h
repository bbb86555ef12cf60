// Measured: what the passes over one run counted, before anything is judged.
//
// The first stage of an analysis. Vitals, findings, verdict and gains are functions of it and of
// one another, in this order; none of them changes what came before. A plain value.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/heap/heap_summary.h"
#include "analysis/idle/idle_sites.h"
#include "analysis/load/workload.h"
#include "analysis/locks/locks.h"
#include "analysis/profile/accelerators.h"
#include "analysis/profile/categories.h"
#include "analysis/profile/profile.h"
#include "analysis/profile/quality.h"
#include "analysis/time/handoffs.h"
#include "analysis/time/parallelism.h"
#include "analysis/time/thread_time.h"
#include "analysis/time/wait_shapes.h"
#include "model/other_user.h"
#include "run/run_kind.h"

namespace assay::analysis {

struct ThreadCpu {  // by thread of the report
  std::array<int64_t, kCategoryRoles> role_ns{};
  int64_t sampled_ns = 0;
};

struct Measured {
  std::string run_path;
  model::RunInfo info;
  run::RunKind run_kind = run::RunKind::recorded;
  std::string counted_unit;  // of a run of counts: "bytes", "goroutine"; else empty
  int64_t window_ns = 0;
  int cpus = 0;  // of the host; 0 when the run does not say
  std::vector<model::Fact> facts;
  model::OtherUsers others;  // who else used the host
  std::vector<AcceleratorUse> accelerators;
  Quality quality;
  TimeSplit thread_time;
  std::vector<ProcessTime> processes;
  std::vector<ThreadTime> threads;
  std::vector<ThreadCpu> thread_cpu;                    // beside threads
  std::array<RoleCaller, kCategoryRoles>
      role_callers;  // the function that causes each part of CPU time
  OnCpuProfile on_cpu;
  OffCpuProfile off_cpu;
  WaitShapeShares wait_shapes;
  HandedOver handed_over;
  Parallelism parallelism;  // of the serving pools
  std::vector<IdleDecision> idle_decisions;  // of the places that matter
  std::vector<CategoryShare> categories;
  std::vector<LockSummary> locks;
  HeapSummary heap;
  Workload workload;
  std::vector<std::string> rule_errors;
  std::string selection;  // which part of the run this is of; empty: all of it
};

}  // namespace assay::analysis
