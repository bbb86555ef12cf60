#include "session/lifecycle/run_output.h"

#include <unistd.h>

#include "base/clock.h"

namespace assay::session {

Result<void> RunOutput::check() const {
  return run::Writer::check(options_.output, options_.overwrite);
}

Result<void> RunOutput::open(const std::string& backend) {
  info_.assay_version = ASSAY_VERSION;
  info_.backend = backend;
  info_.target = options_.target_text;
  info_.command_line = options_.command_line;
  if (info_.window_begin_ns == 0) begin_window(monotonic_ns());
  auto writer = run::Writer::create(options_.output, info_, options_.overwrite);
  if (!writer) return std::unexpected(writer.error());
  writer_ = std::move(*writer);
  sink_ = std::make_unique<RunSink>(*writer_);
  return {};
}

void RunOutput::begin_window(TimeNs begin) {
  info_.window_begin_ns = info_.window_end_ns = begin;
  info_.utc_begin_ns = utc_ns() - (monotonic_ns() - begin);
  if (writer_) writer_->set_info(info_);
}

void RunOutput::set_on_cpu_event(const std::string& event, int64_t period_ns) {
  info_.oncpu_event = event;
  info_.sample_period_ns = period_ns;
}

Result<void> RunOutput::keep_committing(std::function<TimeNs()> complete_until) {
  if (auto flushed = writer_->flush(info_.window_begin_ns); !flushed) return flushed;
  flush_ = std::make_unique<PeriodicFlush>(*writer_, std::move(complete_until));
  return {};
}

std::optional<Error> RunOutput::finish(EndReason reason) {
  info_.end_reason = end_reason_text(reason);
  info_.finished = true;
  if (flush_) flush_->stop();
  if (auto failed = error()) return failed;
  auto finished = writer_->finish(info_);
  return finished ? std::nullopt : std::optional(finished.error());
}

void RunOutput::abandon() {
  flush_.reset();
  sink_.reset();
  writer_.reset();
  unlink(options_.output.c_str());
}

}  // namespace assay::session
