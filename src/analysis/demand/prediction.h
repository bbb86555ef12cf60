// ServerModel: what removing a cost does to throughput, by a model of the server.
//
// The model is a closed queueing network (closed_network.h) of the run's demands: the CPUs and each
// lock are queues, the threads of each pool are a queue for whoever finds none free, all other waits
// are delays. The clients' own time is set so that the model has the throughput that was measured;
// a model that is slower than the server by more than a half says nothing. Then the cost is taken
// out, and what goes with it. In: demands and what to remove. Out: the gain, 0.25 is +25 %. Pure.
#pragma once

#include <optional>

#include "analysis/demand/demands.h"

namespace assay::analysis {

struct Removal {
  double cpu_share = 0;  // of the target's CPU time
  // The pool that spends that CPU time; absent: all, each as it runs.
  std::optional<size_t> cpu_of_pool;
  std::optional<BlockKind> wait;  // and of waits of this kind
  double wait_share = 0;          // as much of them
  std::optional<size_t> lock;     // of the demands' locks: this one alone
  // When throughput rises, one system call or wake-up serves more units, and the kernel's CPU time
  // for each unit falls: it is divided by (growth of throughput) to this power. 0: it does not fall.
  double batching = 0;
};

class ServerModel {
 public:
  // The demands must outlive it.
  explicit ServerModel(const Demands& demands);
  // Absent: the model does not fit the run, or nothing would be left of the demands.
  std::optional<double> predict(const Removal& removal) const;

 private:
  const Demands& demands_;
  double pause_s_ = 0;
  double before_per_s_ = 0;  // by the model; 0: it does not fit
};

}  // namespace assay::analysis
