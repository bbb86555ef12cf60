// SelectedRun: the part of a run that an export is about, as streams of samples and waits.
//
// In: a run::Reader (must outlive it) and a Selection. Out: samples and waits of the selected
// threads, inside the selected time, whose stacks pass focus and ignore; waits cut to that time and
// split into blocked and run-queue time. The wake-up between the two comes as one more SelectedWait
// of the kind wakeup. Nothing is kept per sample, so a large run streams.
// Not thread-safe. Failures: the Reader's; a selection that matches no thread, or that is no
// regular expression or time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/accounted/accounted_run.h"
#include "base/result.h"
#include "run/reader.h"
#include "run/selection/selection.h"

namespace assay::formats {

using run::Selection;

struct SelectedWait {
  const model::Wait& wait;
  analysis::BlockKind kind = analysis::BlockKind::unknown;
  TimeNs begin_ns = 0;      // inside the selected time
  int64_t blocked_ns = 0;   // from begin_ns on
  int64_t runqueue_ns = 0;  // after it

  // 1, or 0 for a part of a wait that is counted already: its wake-up, its time on the run queue.
  int waits() const { return blocked_ns > 0 && kind != analysis::BlockKind::wakeup; }
};

struct SelectedAlloc {
  const model::HeapAlloc& alloc;
  bool in_use = false;  // not freed when the selected time ended
};

class SelectedRun {
 public:
  static Result<std::unique_ptr<SelectedRun>> make(const run::Reader& reader,
                                                   const Selection& selection);

  const run::Reader& reader() const { return accounted_.reader(); }
  const run::Contents& contents() const { return accounted_.contents(); }
  const analysis::CallTree& tree() const { return accounted_.tree(); }
  TimeNs begin_ns() const { return begin_ns_; }
  TimeNs end_ns() const { return end_ns_; }
  bool has(model::ThreadId thread) const {
    return thread.value < threads_.size() && threads_[thread.value];
  }
  const model::Thread& thread(model::ThreadId id) const { return contents().threads[id.value]; }
  const model::Process& process_of(model::ThreadId id) const;

  Result<void> for_each_sample(const std::function<void(const model::Sample&)>& visit);
  Result<void> for_each_wait(const std::function<void(const SelectedWait&)>& visit);
  Result<void> for_each_alloc(const std::function<void(const SelectedAlloc&)>& visit);
  // Of an imported heap profile. Fails for a part of the time: sums have none.
  Result<void> for_each_heap_sum(const std::function<void(const model::HeapSum&)>& visit);

  // "server", or "server [worker 0]" where several processes are of that name; unique in the run.
  const std::string& process_label(model::ProcessId id) const { return labels_[id.value]; }

 private:
  SelectedRun(const run::Reader& reader, const Selection& selection);
  Result<void> choose(const Selection& selection);
  bool has_path(model::StackId stack) const {
    return paths_.empty() || paths_[tree().path_of(stack)];
  }

  analysis::AccountedRun accounted_;  // knows what is idle where that is left out
  std::vector<bool> threads_;         // by thread
  std::vector<bool> paths_;           // by path; empty: all
  std::vector<std::string> labels_;   // by process
  model::Process unknown_;
  TimeNs begin_ns_ = 0;
  TimeNs end_ns_ = 0;
};

}  // namespace assay::formats
