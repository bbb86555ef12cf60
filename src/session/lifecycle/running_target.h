// RunningTarget: the target of one capture, found running or launched, and brought under load.
//
// A launched command is held before its first instruction until `release`, unless load is to drive
// it, or the capture must see it come up: then it is a server that has to come up first, and is
// treated like one that ran before. Never signals a target that it did not launch. One thread uses
// it. Failures: those of finding, launching and loading; a command that was launched has then been
// ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/process/launch.h"
#include "os/process/procfs.h"
#include "session/lifecycle/progress.h"
#include "session/load/load_driver.h"
#include "target/target.h"

namespace assay::session {

// How long a launched command has between SIGTERM and SIGKILL.
inline constexpr int64_t kLaunchedGraceNs = 5 * kNsPerSecond;

struct TargetRequest {
  target::TargetSpec target;
  std::string asked_by = "assay record";  // for remedies: what to call again with --pid
  LoadRequest load;                       // what drives it meanwhile; empty: nothing
  int64_t warmup_ns = 0;
  bool stop_launched = false;  // a launched command ends with the capture, load or not
};

// Why a launched command did not come up.
enum class NotUp : uint8_t { ended, too_slow, interrupted };

// What launching a command needs besides the command.
struct LaunchPlan {
  os::LaunchExtras extras = {};
  // Asked until it is true, while the command runs; null: the command is held instead.
  std::function<bool()> is_up = nullptr;
  std::function<Error(NotUp)> why_not_up = nullptr;  // in words; together with is_up
};

class RunningTarget {
 public:
  using Show = std::function<void(Phase phase, TimeNs since)>;

  RunningTarget(TargetRequest request, const std::atomic<bool>& stop, const os::ProcFs& proc)
      : request_(std::move(request)), stop_(stop), proc_(proc), spec_(request_.target) {}

  void set_launch_plan(LaunchPlan plan) { plan_ = std::move(plan); }  // before find()
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

  bool is_launched() const { return launched_.has_value(); }
  TimeNs launched_at() const { return launched_at_; }
  // find() failed because a launched command had ended by itself before it could be looked at.
  bool ended_unseen() const { return ended_unseen_; }
  bool attached() const { return attached_; }  // it ran before the window; false: held until then
  const target::ResolvedTarget& resolved() const { return resolved_; }
  std::vector<pid_t> pids() const;
  std::vector<pid_t> threads() const;
  LoadDriver* load() const { return load_.get(); }  // null: nothing drives the target
  const std::optional<os::ExitStatus>& launched_exit() const { return launched_exit_; }

 private:
  Result<void> find_and_drive(const Show& show);
  Result<void> launch();
  Result<void> wait_until_up();
  Result<void> start_load(const Show& show);
  Result<void> warm_up(const Show& show);
  Result<void> resolve_launched();

  const TargetRequest request_;
  const std::atomic<bool>& stop_;
  const os::ProcFs& proc_;
  target::TargetSpec spec_;  // what to resolve; of a launched server, its pid
  LaunchPlan plan_;
  std::optional<os::LaunchedProcess> launched_;
  std::optional<os::ExitStatus> launched_exit_;
  TimeNs launched_at_ = 0;
  target::ResolvedTarget resolved_;
  std::unique_ptr<LoadDriver> load_;
  bool attached_ = true;
  bool ended_unseen_ = false;
};

}  // namespace assay::session
