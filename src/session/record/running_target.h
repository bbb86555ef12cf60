// RunningTarget: the target of one capture, found running or launched, and brought under load.
//
// A launched command is held before its first instruction until `release`, unless load is to drive
// it: then it is a server that has to come up first, and is treated like one that ran before. Never
// signals a target that it did not launch. One thread uses it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/process/launch.h"
#include "os/process/procfs.h"
#include "session/load/load_driver.h"
#include "session/record/recorder.h"
#include "target/target.h"

namespace assay::session {

class RunningTarget {
 public:
  using Show = std::function<void(const char* phase, TimeNs begin)>;

  RunningTarget(const RecordOptions& options, const std::atomic<bool>& stop, os::ProcFs& proc)
      : options_(options), stop_(stop), proc_(proc), spec_(options.target) {}

  // What a command is to be launched with, besides; before find().
  void set_extras(os::LaunchExtras extras) { extras_ = std::move(extras); }
  bool is_launched() const { return launched_.has_value(); }
  // Finds or launches the target, starts the load and lets both warm up; `show` tells how it goes.
  Result<void> find(const Show& show);
  // Looks again at who the target is now; an error when it has gone.
  Result<void> resolve();
  // Lets a held command run.
  Result<void> release();
  // Ends a launched command where that is the capture's to do: the user ended the capture, or it
  // was a server that the capture drove itself.
  void stop_launched();
  // Whether a launched command has ended; asks the kernel without waiting.
  bool launched_has_ended();

  bool attached() const { return attached_; }  // it ran before the window; false: held until then
  const target::ResolvedTarget& resolved() const { return resolved_; }
  std::vector<pid_t> pids() const;
  std::vector<pid_t> threads() const;
  LoadDriver* load() const { return load_.get(); }  // null: nothing drives the target
  const std::optional<os::ExitStatus>& launched_exit() const { return launched_exit_; }

 private:
  Result<void> launch();
  Result<void> start_load(const Show& show);
  Result<void> warm_up(const Show& show);

  const RecordOptions& options_;
  const std::atomic<bool>& stop_;
  os::ProcFs& proc_;
  target::TargetSpec spec_;  // what to resolve; of a launched server, its pid
  std::optional<os::LaunchedProcess> launched_;
  std::optional<os::ExitStatus> launched_exit_;
  target::ResolvedTarget resolved_;
  std::unique_ptr<LoadDriver> load_;
  os::LaunchExtras extras_;
  bool attached_ = true;
};

}  // namespace assay::session
