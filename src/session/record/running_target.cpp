#include "session/record/running_target.h"

#include <unistd.h>

namespace assay::session {
namespace {

constexpr int64_t kWarmTickNs = 100 * kNsPerMs;
constexpr int64_t kLaunchedGraceNs = 5 * kNsPerSecond;

}  // namespace

Result<void> RunningTarget::find(const Show& show) {
  if (!options_.load.what.empty()) {
    auto driver = LoadDriver::create(options_.load);
    if (!driver) return std::unexpected(driver.error());
    load_ = std::move(*driver);
  }
  if (!options_.target.command.empty()) {
    if (auto started = launch(); !started || !attached_) return started;
  }
  if (!launched_) {
    if (auto found = resolve(); !found) return found;
  }
  if (auto started = start_load(show); !started) return started;
  if (auto warm = warm_up(show); !warm) return warm;
  if (launched_) return resolve();
  return {};
}

Result<void> RunningTarget::launch() {
  extras_.output_to_stderr = options_.target.output_to_stderr;
  auto started = os::LaunchedProcess::start(options_.target.command, extras_);
  if (!started) return std::unexpected(started.error());
  launched_ = std::move(*started);
  attached_ = load_ != nullptr;
  if (!attached_) return {};
  spec_.command.clear();
  spec_.pids = {launched_->pid()};
  return launched_->release();
}

Result<void> RunningTarget::start_load(const Show& show) {
  if (!load_) return {};
  TimeNs begin = monotonic_ns();
  auto ready = load_->wait_until_ready(
      stop_, [this] { return launched_has_ended(); },
      [&] { show("waiting for the server", begin); });
  if (!ready) return ready;
  if (stop_) return fail("interrupted before the capture began");
  return load_->start();
}

Result<void> RunningTarget::warm_up(const Show& show) {
  TimeNs warm = monotonic_ns() + options_.warmup_ns;
  while (!stop_ && monotonic_ns() < warm) {
    show("warming up", warm);
    if (load_ && !load_->poll(monotonic_ns())) return fail("the load failed: {}", load_->fault());
    usleep(kWarmTickNs / 1000);
  }
  return {};
}

Result<void> RunningTarget::resolve() {
  target::Surroundings surroundings;
  surroundings.self = getpid();
  if (load_) surroundings.excluded = load_->pids();
  auto resolved = target::resolve(spec_, proc_, surroundings);
  if (!resolved) return std::unexpected(resolved.error());
  resolved_ = std::move(*resolved);
  return {};
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
  if (load_ || options_.stop_launched) {
    launched_->terminate(kLaunchedGraceNs);  // our doing, and not how it ended
  } else if (stop_) {
    launched_exit_ = launched_->terminate(kLaunchedGraceNs);
  } else {
    launched_exit_ = launched_->poll();
  }
}

}  // namespace assay::session
