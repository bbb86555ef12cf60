// RunOutput: the run file of one capture, from the question whether it may be made to its last
// commit.
//
// In: what the capture was asked for and what it learns of itself (info). Out: a file that opens
// whatever ends the capture. Threads: one owner; a thread of its own commits once a second; sink()
// and writer() take from any. Failures: a path that may not be written is an Error before anything
// is begun; a disk that fills up later is told by error(), and what was committed stays readable.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "model/run_info.h"
#include "run/writer.h"
#include "session/lifecycle/capture_options.h"
#include "session/lifecycle/end_reason.h"
#include "session/lifecycle/periodic_flush.h"
#include "session/lifecycle/run_sink.h"

namespace assay::session {

class RunOutput {
 public:
  explicit RunOutput(const CaptureOptions& options) : options_(options) {}

  Result<void> check() const;
  // Makes the file; the window begins now until set_info() says otherwise.
  Result<void> open(const std::string& backend);
  bool is_open() const { return writer_ != nullptr; }

  const model::RunInfo& info() const { return info_; }
  // What the capture knows only when its window begins or ends.
  void begin_window(TimeNs begin);
  void end_window(TimeNs end) { info_.window_end_ns = end; }
  void set_on_cpu_event(const std::string& event, int64_t period_ns);

  run::Writer& writer() { return *writer_; }
  evidence::Sink& sink() { return *sink_; }

  // From here on commits about once a second what is complete; the first one now.
  Result<void> keep_committing(std::function<TimeNs()> complete_until);
  std::optional<Error> error() { return flush_ ? flush_->error() : std::nullopt; }
  // The last commit; an Error when it failed, or an earlier one had.
  std::optional<Error> finish(EndReason reason);
  // Nothing was captured: no file is better than an empty one.
  void abandon();

 private:
  const CaptureOptions& options_;
  model::RunInfo info_;
  std::unique_ptr<run::Writer> writer_;
  std::unique_ptr<RunSink> sink_;
  std::unique_ptr<PeriodicFlush> flush_;
};

}  // namespace assay::session
