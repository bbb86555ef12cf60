#include "session/heap/heap_session.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <unistd.h>

#include "capture/heap/injection_plan.h"
#include "session/record/life_watch.h"
#include "session/record/periodic_flush.h"
#include "session/record/stages.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 20 * kNsPerMs;
constexpr int64_t kResyncNs = kNsPerSecond;
constexpr int64_t kShowNs = 200 * kNsPerMs;
constexpr int64_t kReadyNs = 10 * kNsPerSecond;  // a launched program makes its channel at once
constexpr int64_t kLaunchedGraceNs = 5 * kNsPerSecond;

class HeapSession {
 public:
  HeapSession(const HeapOptions& options, const std::atomic<bool>& stop,
              const std::function<void(const HeapProgress&)>& progress)
      : options_(options), stop_(stop), progress_(progress), heap_(options.sampling) {}

  Result<HeapOutcome> run();

 private:
  Result<void> launch();
  Result<void> find_target();
  Result<void> open_run();
  void build_stages();
  std::string read_until_end();
  bool target_is_gone(TimeNs now);
  Result<HeapOutcome> finish(const std::string& reason);
  void show(const char* phase);

  const HeapOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const HeapProgress&)>& progress_;
  os::ProcFs proc_;
  model::RunInfo info_;
  std::optional<os::LaunchedProcess> launched_;
  std::optional<os::ExitStatus> launched_exit_;
  target::TargetSpec spec_ = options_.target;
  target::ResolvedTarget resolved_;
  std::unique_ptr<run::Writer> writer_;
  std::unique_ptr<Stages> stages_;
  evidence::HotSource hot_source_;
  HeapCapture heap_;
  LifeWatch lives_;
  std::unique_ptr<PeriodicFlush> flush_;
  std::atomic<TimeNs> complete_until_{0};
};

Result<HeapOutcome> HeapSession::run() {
  if (auto free = run::Writer::check(options_.output, options_.overwrite); !free)
    return std::unexpected(free.error());
  info_.window_begin_ns = monotonic_ns();
  show("preparing");
  if (!options_.target.command.empty()) {
    if (auto started = launch(); !started) {
      if (launched_) launched_->terminate(kLaunchedGraceNs);
      return std::unexpected(started.error());
    }
  }
  if (auto found = find_target(); !found) {
    if (!launched_exit_) return std::unexpected(found.error());
    HeapOutcome outcome;
    outcome.ended_at_once = true;
    outcome.launched_exit = launched_exit_;
    return outcome;
  }
  if (!launched_) {
    if (auto attached = heap_.attach(resolved_.pids(), [this] { show("waiting"); }); !attached)
      return std::unexpected(attached.error());
  }
  if (auto opened = open_run(); !opened) return std::unexpected(opened.error());
  build_stages();
  flush_ = std::make_unique<PeriodicFlush>(*writer_, [this] { return complete_until_.load(); });
  return finish(read_until_end());
}

// Found as the shell would; what cannot be found is told by starting it.
Result<void> check_program(const std::string& command) {
  if (command.find('/') != std::string::npos) return capture::check_launchable(command);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder + "/" + command;
    if (access(program.c_str(), X_OK) == 0) return capture::check_launchable(program);
  }
  return {};
}

Result<void> HeapSession::launch() {
  if (auto fine = check_program(options_.target.command.front()); !fine) return fine;
  auto extras = heap_.prepare_launch();
  if (!extras) return std::unexpected(extras.error());
  extras->output_to_stderr = options_.target.output_to_stderr;
  auto started = os::LaunchedProcess::start(options_.target.command, *extras);
  if (!started) return std::unexpected(started.error());
  launched_ = std::move(*started);
  info_.window_begin_ns = monotonic_ns();
  if (auto released = launched_->release(); !released) return released;
  TimeNs deadline = monotonic_ns() + kReadyNs;
  while (!heap_.has_channels()) {
    if (stop_) return fail("interrupted before the program had loaded the sampler");
    launched_exit_ = launched_->poll();
    // One that has ended may have made it just before.
    if (launched_exit_ && heap_.has_channels()) break;
    if (launched_exit_ || monotonic_ns() > deadline) {
      return fail_with_remedy(
          fmt::format("{} {} without having loaded the heap sampler: it may be linked statically, "
                      "with another C library, or run with other privileges",
                      options_.target.command.front(), launched_exit_ ? "ended" : "runs"),
          "assay doctor -- tells how a program was built; link it dynamically with glibc");
    }
    usleep(500);
  }
  spec_.command.clear();
  spec_.pids = {launched_->pid()};
  return {};
}

Result<void> HeapSession::find_target() {
  target::Surroundings surroundings;
  surroundings.self = getpid();
  surroundings.command = "assay heap";
  auto resolved = target::resolve(spec_, proc_, surroundings);
  // A command that is about to end has no program any more, and a moment later an exit status.
  constexpr int kLooks = 100;
  for (int look = 0; !resolved && launched_ && !launched_exit_ && look < kLooks; ++look) {
    launched_exit_ = launched_->poll();
    if (!launched_exit_) usleep(10'000);
  }
  if (!resolved) return std::unexpected(resolved.error());
  resolved_ = std::move(*resolved);
  return {};
}

Result<void> HeapSession::open_run() {
  info_.assay_version = ASSAY_VERSION;
  info_.backend = "heap";
  info_.target = options_.target_text;
  info_.command_line = options_.command_line;
  if (!launched_) info_.window_begin_ns = monotonic_ns();
  info_.window_end_ns = info_.window_begin_ns;
  info_.utc_begin_ns = utc_ns() - (monotonic_ns() - info_.window_begin_ns);
  auto writer = run::Writer::create(options_.output, info_, options_.overwrite);
  if (!writer) return std::unexpected(writer.error());
  writer_ = std::move(*writer);
  complete_until_ = info_.window_begin_ns;
  return {};
}

void HeapSession::build_stages() {
  stages_ = std::make_unique<Stages>(options_, "", proc_, *writer_);
  stages_->tracker.adopt(resolved_, info_.window_begin_ns);
  for (const target::ResolvedProcess& process : resolved_.processes)
    stages_->spaces.load(process.pid);
  heap_.join({proc_, stages_->stacks, stages_->tracker, *writer_, hot_source_}, stages_->spaces);
  stages_->processes.write_host_facts();
  stages_->processes.write_new_facts();
}

bool HeapSession::target_is_gone(TimeNs now) {
  if (launched_ && !launched_exit_) launched_exit_ = launched_->poll();
  target::Tracker& tracker = stages_->tracker;
  if (tracker.process_count() == 0 || (launched_exit_ && tracker.process_count() <= 1)) return true;
  lives_.follow(tracker.pids());
  if (!lives_.all_ended()) return false;
  tracker.resync(now);  // children that nobody has seen yet
  lives_.follow(tracker.pids());
  return lives_.all_ended();
}

std::string HeapSession::read_until_end() {
  TimeNs deadline =
      options_.duration_ns > 0 ? info_.window_begin_ns + options_.duration_ns : INT64_MAX;
  TimeNs next_resync = 0, next_show = 0;
  while (true) {
    TimeNs now = monotonic_ns();
    heap_.poll(now);
    complete_until_ = now;
    if (now >= deadline) return "time";
    if (stop_) return "interrupted";
    if (flush_->error()) return "write failed";
    if (now >= next_resync) {
      next_resync = now + kResyncNs;
      stages_->tracker.resync(now);
      stages_->processes.write_new_facts();
    }
    if (target_is_gone(now)) return "target exited";
    if (now >= next_show) {
      next_show = now + kShowNs;
      show("sampling");
    }
    lives_.wait(std::min(kTickNs, deadline - now));
  }
}

Result<HeapOutcome> HeapSession::finish(const std::string& reason) {
  // What is divided by the window's length happened while the target lived.
  info_.window_end_ns = lives_.all_ended() ? lives_.last_end() : monotonic_ns();
  heap_.end(info_.window_end_ns);
  info_.end_reason = reason;
  info_.finished = true;
  if (launched_ && !launched_exit_ && stop_)
    launched_exit_ = launched_->terminate(kLaunchedGraceNs);
  show("naming");
  stages_->namer.finish();
  if (options_.source) stages_->keep_source({&hot_source_});
  flush_->stop();
  HeapOutcome outcome;
  outcome.allocations = heap_.evidence()->counts().allocations;
  outcome.dropped = heap_.dropped();
  outcome.holds = heap_.holds();
  outcome.launched_exit = launched_exit_;
  outcome.write_error = flush_->error();
  if (!outcome.write_error) {
    if (auto finished = writer_->finish(info_); !finished) outcome.write_error = finished.error();
  }
  outcome.info = info_;
  return outcome;
}

void HeapSession::show(const char* phase) {
  HeapProgress state;
  state.now = monotonic_ns();
  state.begin = info_.window_begin_ns;
  state.duration_ns = options_.duration_ns;
  state.phase = phase;
  if (heap_.evidence() != nullptr) {
    state.allocations = heap_.evidence()->counts().allocations;
    state.live_bytes = heap_.evidence()->counts().live_bytes;
  }
  progress_(state);
}

}  // namespace

Result<HeapOutcome> profile_heap(const HeapOptions& options, const std::atomic<bool>& stop,
                                 const std::function<void(const HeapProgress&)>& progress) {
  return HeapSession(options, stop, progress).run();
}

}  // namespace assay::session
