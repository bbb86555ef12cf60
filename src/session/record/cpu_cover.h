// CpuCover: keeps every CPU sampled when CPUs are taken off and brought back during a capture.
//
// The kernel closes the events of a CPU that goes, for good. When the CPU is back they are opened
// anew; the time between its return and that is counted as lost, in samples, and where events cannot
// be opened again, all of the time until the capture's end is. In: looks, a few times a second. Out:
// losses and notes of the run. Threads: one at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "model/run_info.h"
#include "os/machine/cpu_watch.h"

namespace assay::session {

class CpuCover {
 public:
  struct Parts {
    std::function<Result<void>(int cpu)> reopen;
    std::function<void(int cpu, TimeNs time, uint64_t samples)> lost;
    std::function<void(const model::QualityNote&)> note;
  };
  CpuCover(std::unique_ptr<os::CpuWatch> watch, Parts parts, int64_t sample_period_ns, TimeNs begin)
      : watch_(std::move(watch)),
        parts_(std::move(parts)),
        sample_period_ns_(sample_period_ns),
        last_look_(begin) {}

  void look(TimeNs now);
  void finish(TimeNs window_end);

 private:
  void came_back(int cpu, TimeNs now);
  void lose(int cpu, TimeNs begin, TimeNs end);

  std::unique_ptr<os::CpuWatch> watch_;
  Parts parts_;
  int64_t sample_period_ns_;
  TimeNs last_look_;
  std::map<int, TimeNs> uncovered_since_;  // by CPU that runs without events
  std::map<int, uint64_t> returns_;        // by CPU
};

}  // namespace assay::session
