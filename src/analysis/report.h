// Report: everything a run says, computed once; text, Markdown and JSON only lay it out.
#pragma once

#include <string>
#include <vector>

#include "analysis/profile.h"
#include "analysis/quality.h"
#include "analysis/thread_time.h"

namespace assay::analysis {

struct Report {
  std::string run_path;
  model::RunInfo info;
  int64_t window_ns = 0;
  int cpus = 0;  // of the host; 0 when the run does not say
  std::vector<model::Fact> facts;
  Quality quality;
  TimeSplit thread_time;
  std::vector<ProcessTime> processes;
  std::vector<ThreadTime> threads;
  OnCpuProfile on_cpu;
  OffCpuProfile off_cpu;
  std::string selection;  // which part of the run this is of; empty: all of it
};

}  // namespace assay::analysis
