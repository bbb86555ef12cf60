#include "session/lifecycle/running_target.h"

#include <unistd.h>

namespace assay::session {
namespace {

constexpr int64_t kWarmTickNs = 100 * kNsPerMs;
constexpr int64_t kUpNs = 10 * kNsPerSecond;  // a command that is to come up does so by then

}  // namespace

Result<void> RunningTarget::find(const Show& show) {
  auto found = find_and_drive(show);
  if (!found && launched_ && attached_ && !launched_has_ended())
    launched_->terminate(kLaunchedGraceNs);  // our doing, and not how it ended
  return found;
}

Result<void> RunningTarget::find_and_drive(const Show& show) {
  if (!request_.load.what.empty()) {
    auto driver = LoadDriver::create(request_.load);
    if (!driver) return std::unexpected(driver.error());
    load_ = std::move(*driver);
  }
  if (!request_.target.command.empty()) {
    if (auto started = launch(); !started || !attached_) return started;
  }
  if (!launched_) {
    if (auto found = resolve(); !found) return found;
  }
  if (auto started = start_load(show); !started) return started;
  if (auto warm = warm_up(show); !warm) return warm;
  return launched_ ? resolve_launched() : Result<void>{};
}

Result<void> RunningTarget::launch() {
  os::LaunchExtras extras = plan_.extras;
  extras.output_to_stderr = request_.target.output_to_stderr;
  auto started = os::LaunchedProcess::start(request_.target.command, extras);
  if (!started) return std::unexpected(started.error());
  launched_ = std::move(*started);
  launched_at_ = monotonic_ns();
  attached_ = load_ != nullptr || plan_.is_up;
  if (!attached_) return {};
  spec_.command.clear();
  spec_.pids = {launched_->pid()};
  if (auto released = launched_->release(); !released) return released;
  return wait_until_up();
}

Result<void> RunningTarget::wait_until_up() {
  if (!plan_.is_up) return {};
  TimeNs deadline = monotonic_ns() + kUpNs;
  while (!plan_.is_up()) {
    if (stop_) return std::unexpected(plan_.why_not_up(NotUp::interrupted));
    // One that has ended may have come up just before.
    bool ended = launched_has_ended();
    if (ended && plan_.is_up()) return {};
    if (ended) return std::unexpected(plan_.why_not_up(NotUp::ended));
    if (monotonic_ns() > deadline) return std::unexpected(plan_.why_not_up(NotUp::too_slow));
    usleep(500);
  }
  return {};
}

Result<void> RunningTarget::start_load(const Show& show) {
  if (!load_) return {};
  TimeNs begin = monotonic_ns();
  auto ready = load_->wait_until_ready(
      stop_, [this] { return launched_has_ended(); },
      [&] { show(Phase::waiting_for_server, begin); });
  if (!ready) return ready;
  if (stop_) return fail("interrupted before the capture began");
  return load_->start();
}

Result<void> RunningTarget::warm_up(const Show& show) {
  TimeNs warm = monotonic_ns() + request_.warmup_ns;
  while (!stop_ && monotonic_ns() < warm) {
    show(Phase::warming_up, warm);
    if (load_ && !load_->poll(monotonic_ns())) return fail("the load failed: {}", load_->fault());
    usleep(kWarmTickNs / 1000);
  }
  return {};
}

Result<void> RunningTarget::resolve() {
  target::Surroundings surroundings;
  surroundings.self = getpid();
  surroundings.command = request_.asked_by;
  if (load_) surroundings.excluded = load_->pids();
  auto resolved = target::resolve(spec_, proc_, surroundings);
  if (!resolved) return std::unexpected(resolved.error());
  resolved_ = std::move(*resolved);
  return {};
}

// A command that is about to end has no program any more, and a moment later an exit status.
Result<void> RunningTarget::resolve_launched() {
  auto resolved = resolve();
  constexpr int kLooks = 100;
  for (int look = 0; !resolved && !launched_has_ended() && look < kLooks; ++look) usleep(10'000);
  ended_unseen_ = !resolved && launched_exit_;
  return resolved;
}

Result<void> RunningTarget::release() {
  if (attached_) return {};
  return launched_->release();
}

std::vector<pid_t> RunningTarget::pids() const {
  if (!attached_) return {launched_->pid()};
  return resolved_.pids();
}

std::vector<pid_t> RunningTarget::threads() const {
  if (!attached_) return {launched_->pid()};
  std::vector<pid_t> tids;
  for (pid_t pid : resolved_.pids()) {
    for (pid_t tid : proc_.tids(pid)) tids.push_back(tid);
  }
  return tids;
}

bool RunningTarget::launched_has_ended() {
  if (launched_ && !launched_exit_) launched_exit_ = launched_->poll();
  return launched_exit_.has_value();
}

void RunningTarget::stop_launched() {
  if (!launched_ || launched_exit_) return;
  if (load_ || request_.stop_launched) {
    launched_->terminate(kLaunchedGraceNs);  // our doing, and not how it ended
  } else if (stop_) {
    launched_exit_ = launched_->terminate(kLaunchedGraceNs);
  } else {
    launched_exit_ = launched_->poll();
  }
}

}  // namespace assay::session
