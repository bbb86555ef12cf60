#include "session/heap/heap_session.h"

#include <cstdlib>
#include <sstream>

#include <unistd.h>

#include "capture/heap/injection_plan.h"
#include "os/sandbox/capture_rights.h"
#include "session/lifecycle/lifecycle.h"
#include "session/lifecycle/run_output.h"
#include "session/record/stages.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 20 * kNsPerMs;
constexpr int64_t kResyncNs = kNsPerSecond;
constexpr int64_t kShowNs = 200 * kNsPerMs;

Lifecycle::Plan plan_of(const HeapOptions& options) {
  Lifecycle::Plan plan;
  plan.target.target = options.target;
  plan.target.asked_by = "assay heap";
  plan.duration_ns = options.duration_ns;
  plan.tick_ns = kTickNs;
  return plan;
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

Error not_sampled(const std::string& command, NotUp why) {
  if (why == NotUp::interrupted)
    return {"interrupted before the program had loaded the sampler", "", 0};
  return {fmt::format("{} {} without having loaded the heap sampler: it may be linked statically, "
                      "with another C library, or run with other privileges",
                      command, why == NotUp::ended ? "ended" : "runs"),
          "assay doctor -- tells how a program was built; link it dynamically with glibc", 0};
}

class HeapSession final : public CaptureSteps {
 public:
  HeapSession(const HeapOptions& options, const std::atomic<bool>& stop,
              const std::function<void(const HeapProgress&)>& progress)
      : options_(options),
        progress_(progress),
        life_(plan_of(options), stop, proc_),
        heap_(options.sampling) {}

  Result<HeapOutcome> run();

  Result<void> prepare() override;
  Result<void> open() override;
  Result<TimeNs> begin() override;
  std::optional<EndReason> poll(TimeNs now) override;
  void end(EndReason reason) override;
  void finish(EndReason reason) override;
  void show(Phase phase, TimeNs since) override;

 private:
  bool target_is_gone(TimeNs now);
  void show(Phase phase) { show(phase, output_.info().window_begin_ns); }
  RunningTarget& target() { return life_.target(); }

  const HeapOptions& options_;
  const std::function<void(const HeapProgress&)>& progress_;
  os::ProcFs proc_;
  Lifecycle life_;
  HeapOutcome outcome_;
  RunOutput output_{options_};
  std::unique_ptr<Stages> stages_;
  evidence::HotSource hot_source_;
  HeapCapture heap_;
  std::atomic<TimeNs> complete_until_{0};
  TimeNs next_resync_ = 0, next_show_ = 0;
};

Result<HeapOutcome> HeapSession::run() {
  auto ended = life_.run(*this);
  outcome_.ended_at_once = !ended && target().ended_unseen();
  if (!ended && !outcome_.ended_at_once) return std::unexpected(ended.error());
  if (ended) outcome_.end = *ended;
  outcome_.info = output_.info();
  outcome_.launched_exit = target().launched_exit();
  return std::move(outcome_);
}

Result<void> HeapSession::prepare() {
  if (auto free = output_.check(); !free) return free;
  show(Phase::preparing);
  if (options_.target.command.empty()) return {};
  const std::string& command = options_.target.command.front();
  if (auto fine = check_program(command); !fine) return fine;
  auto extras = heap_.prepare_launch();
  if (!extras) return std::unexpected(extras.error());
  target().set_launch_plan(
      {.extras = std::move(*extras),
       .is_up = [this] { return heap_.has_channels(); },
       .why_not_up = [&command](NotUp why) { return not_sampled(command, why); }});
  return {};
}

Result<void> HeapSession::open() {
  if (target().is_launched()) {
    output_.begin_window(target().launched_at());
  } else {
    auto attached = heap_.attach(target().pids(), [this] { show(Phase::waiting_for_detach); });
    if (!attached) return attached;
  }
  if (auto opened = output_.open("heap"); !opened) return opened;
  // Before there are threads: each has rights of its own.
  return options_.gives_up_rights ? os::give_up_rights(target().pids()) : Result<void>{};
}

Result<TimeNs> HeapSession::begin() {
  TimeNs begin = output_.info().window_begin_ns;
  complete_until_ = begin;
  stages_ = std::make_unique<Stages>(options_, "", proc_, output_.sink());
  stages_->tasks.adopt(target().resolved(), begin);
  for (pid_t pid : target().pids()) stages_->spaces.load(pid);
  heap_.join({proc_, stages_->stacks, stages_->tasks, output_.sink(), hot_source_},
             stages_->spaces);
  stages_->processes.write_host_facts();
  stages_->processes.write_new_facts();
  auto committing = output_.keep_committing([this] { return complete_until_.load(); });
  if (committing) return begin;
  heap_.end(monotonic_ns());
  stages_->namer.finish();
  output_.abandon();
  return std::unexpected(committing.error());
}

bool HeapSession::target_is_gone(TimeNs now) {
  bool launched_gone = target().launched_has_ended();
  TrackedTasks& tasks = stages_->tasks;
  if (tasks.process_count() == 0 || (launched_gone && tasks.process_count() <= 1)) return true;
  LifeWatch& lives = life_.lives();
  lives.follow(tasks.pids());
  if (!lives.all_ended()) return false;
  tasks.resync(now);  // children that were not announced yet
  lives.follow(tasks.pids());
  return lives.all_ended();
}

std::optional<EndReason> HeapSession::poll(TimeNs now) {
  heap_.poll(now);
  complete_until_ = now;
  if (output_.error()) return EndReason::write_failed;
  if (now >= next_resync_) {
    next_resync_ = now + kResyncNs;
    stages_->tasks.resync(now);
    stages_->processes.write_new_facts();
  }
  if (target_is_gone(now)) return EndReason::target_exited;
  if (now >= next_show_) {
    next_show_ = now + kShowNs;
    show(Phase::sampling);
  }
  return std::nullopt;
}

void HeapSession::end(EndReason) {
  // What is divided by the window's length happened while the target lived.
  const LifeWatch& lives = life_.lives();
  TimeNs window_end = lives.all_ended() ? lives.last_end() : monotonic_ns();
  output_.end_window(window_end);
  heap_.end(window_end);
}

void HeapSession::finish(EndReason reason) {
  show(Phase::naming);
  stages_->finish(options_.source, {&hot_source_});
  outcome_.allocations = heap_.evidence()->counts().allocations;
  outcome_.dropped = heap_.dropped();
  outcome_.holds = heap_.holds();
  outcome_.write_error = output_.finish(reason);
}

void HeapSession::show(Phase phase, TimeNs since) {
  HeapProgress state;
  state.now = monotonic_ns();
  state.begin = since;
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
