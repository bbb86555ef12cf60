#include "session/record/recorder.h"

#include <cstdlib>
#include <map>

#include <sys/resource.h>

#include "capture/counters/poller.h"
#include "capture/devices/device_server.h"
#include "capture/perf/event_set.h"
#include "evidence/data_names.h"
#include "evidence/recording.h"
#include "evidence/wait_sites.h"
#include "os/machine/capabilities.h"
#include "os/sandbox/capture_rights.h"
#include "session/lifecycle/lifecycle.h"
#include "session/lifecycle/run_output.h"
#include "session/record/consumer.h"
#include "session/record/event_choice.h"
#include "session/record/perf_events.h"
#include "session/record/stages.h"

namespace assay::session {
namespace {

// Per-task capture needs a descriptor per thread, CPU and event.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Lifecycle::Plan plan_of(const RecordOptions& options) {
  Lifecycle::Plan plan;
  plan.target.target = options.target;
  plan.target.load = options.load;
  plan.target.warmup_ns = options.warmup_ns;
  plan.target.stop_launched = options.stop_launched;
  plan.duration_ns = options.duration_ns;
  return plan;
}

// Accelerators are read by a process of our own program. Tests give a stand-in for the vendor's
// library, which counts only where this process has no more rights than its user.
void read_devices(const std::string& program, capture::CounterOptions& options) {
  if (program.empty()) return;
  options.devices.program = program;
  options.devices.arguments = {capture::kDevicesWord};
  const char* stand_in = ::secure_getenv("ASSAY_TEST_NVML");
  if (stand_in == nullptr) return;
  options.devices.arguments.emplace_back(stand_in);
  options.devices_always = true;
}

class CountersToRun final : public capture::CounterSink {
 public:
  explicit CountersToRun(run::Writer& writer) : writer_(writer) {}
  void add_series(const model::Series& series) override { writer_.add_series(series); }
  void add_point(const model::Point& point) override { writer_.add_point(point); }
  void add_note(const model::QualityNote& note) override { writer_.add_note(note); }
  void add_fact(const model::Fact& fact) override { writer_.add_fact(fact); }

 private:
  run::Writer& writer_;
};

class Recorder final : public CaptureSteps {
 public:
  Recorder(const RecordOptions& options, const std::atomic<bool>& stop,
           const std::function<void(const RecordProgress&)>& progress)
      : options_(options), progress_(progress), life_(plan_of(options), stop, proc_) {}

  Result<RecordOutcome> run();

  Result<void> prepare() override;
  Result<void> open() override;
  Result<TimeNs> begin() override;
  std::optional<EndReason> poll(TimeNs now) override;
  void end(EndReason reason) override;
  void finish(EndReason reason) override;
  void show(Phase phase, TimeNs since) override;

 private:
  void build_stages();
  Result<void> open_events();
  Result<void> open_window();
  void start_counters();
  Result<void> adopt_target();
  void note_limits();
  void abandon_run();
  void show(Phase phase) { show(phase, output_.info().window_begin_ns); }
  RunningTarget& target() { return life_.target(); }
  TimeNs window_begin() const { return output_.info().window_begin_ns; }

  const RecordOptions& options_;
  const std::function<void(const RecordProgress&)>& progress_;
  os::ProcFs proc_;
  os::Capabilities machine_ = os::read_capabilities();
  Lifecycle life_;
  RecordOutcome outcome_;
  // In the order of the path of a sample; destroyed in reverse.
  RunOutput output_{options_};
  std::unique_ptr<Stages> stages_;
  evidence::HotSource hot_source_;
  evidence::HotSource heap_source_;    // weighed by bytes
  std::unique_ptr<HeapCapture> heap_;  // null: allocations are not sampled
  std::unique_ptr<evidence::DataNames> data_names_;
  std::unique_ptr<evidence::WaitSites> sites_;
  std::unique_ptr<capture::EventSet> events_;
  std::unique_ptr<PerfEvents> perf_;
  std::unique_ptr<BpfBackend> bpf_;  // null: perf events alone
  std::vector<model::QualityNote> limits_;
  std::unique_ptr<evidence::StackPolicy> stack_policy_;
  std::unique_ptr<evidence::Recording> recording_;
  std::unique_ptr<capture::RingReader> reader_;
  std::unique_ptr<Consumer> consumer_;
  std::atomic<uint32_t> next_series_id_{0};
  std::unique_ptr<CountersToRun> counters_sink_;
  std::unique_ptr<capture::CounterPoller> counters_;
};

Result<RecordOutcome> Recorder::run() {
  auto ended = life_.run(*this);
  if (!ended) return std::unexpected(ended.error());
  outcome_.end = *ended;
  outcome_.info = output_.info();
  outcome_.launched_exit = target().launched_exit();
  return std::move(outcome_);
}

// Into a running target at once, into a command when it is launched.
Result<void> Recorder::prepare() {
  if (auto free = output_.check(); !free) return free;
  if (!options_.heap) return {};
  heap_ = std::make_unique<HeapCapture>(*options_.heap);
  if (options_.target.command.empty()) return {};
  auto extras = heap_->prepare_launch();
  if (!extras) return std::unexpected(extras.error());
  target().set_launch_plan({.extras = std::move(*extras)});
  return {};
}

Result<void> Recorder::open() {
  show(Phase::preparing);
  raise_descriptor_limit();  // after a launched command was forked: its limits are its own
  if (auto opened = open_events(); !opened) return opened;
  if (heap_ && !target().is_launched()) {
    auto attached = heap_->attach(target().pids(), [this] { show(Phase::waiting_for_detach); });
    if (!attached) return attached;
  }
  if (auto opened = output_.open(bpf_ ? "bpf" : "perf_event"); !opened) return opened;
  // Before there are threads: each has rights of its own.
  if (options_.gives_up_rights) {
    if (auto given = os::give_up_rights(target().pids()); !given) return given;
  }
  build_stages();
  return {};
}

void Recorder::build_stages() {
  stages_ = std::make_unique<Stages>(
      options_, options_.cache_dir, proc_, output_.sink(),
      [this](pid_t pid, const model::Mapping& mapping, const model::Module& module) {
        stages_->unwinder->prepare(pid, mapping, module);
        if (bpf_) bpf_->mapping_changed(pid);
      });
  data_names_ =
      std::make_unique<evidence::DataNames>(stages_->spaces, stages_->tasks, stages_->namer);
  sites_ = std::make_unique<evidence::WaitSites>(
      proc_, *stages_->symbolizer, stages_->spaces.kernel(),
      [this](pid_t pid, uint64_t address) { data_names_->waited_on(pid, address); });
  if (bpf_) bpf_->join(stages_->spaces, *stages_->unwinder);
  if (heap_)
    heap_->join({proc_, stages_->stacks, stages_->tasks, output_.sink(), heap_source_},
                stages_->spaces);
  // Tables are built before the window opens, so that the consumer need not stop for them; the
  // first kernel name makes the symbolizer read all of them.
  (void)stages_->symbolizer->resolve(stages_->spaces.kernel(), 0);
  for (const target::ResolvedProcess& process : target().resolved().processes)
    stages_->spaces.load(process.pid);
}

Result<void> Recorder::open_events() {
  auto choice = choose_events(options_, machine_, [this] { return target().threads(); });
  if (!choice) return std::unexpected(choice.error());
  events_ = std::move(choice->events);
  bpf_ = std::move(choice->bpf);
  limits_ = std::move(choice->notes);
  perf_ = std::make_unique<PerfEvents>(*events_);
  stack_policy_ = std::make_unique<evidence::StackPolicy>(*perf_);
  return {};
}

void Recorder::note_limits() {
  for (const model::QualityNote& note : limits_) output_.sink().add_note(note);
  if (events_->untracked_threads() > 0) {
    output_.sink().add_loss(
        {model::LossKind::untracked_threads, -1, window_begin(), events_->untracked_threads()});
  }
}

// What was begun is ended, and the target is left as it was.
void Recorder::abandon_run() {
  events_->disable();
  if (bpf_) bpf_->end();
  reader_->stop();
  if (consumer_) consumer_->join();
  if (heap_) heap_->end(monotonic_ns());
  stages_->namer.finish();
  output_.abandon();
}

Result<TimeNs> Recorder::begin() {
  if (auto begun = open_window(); !begun) {
    abandon_run();
    return std::unexpected(begun.error());
  }
  return window_begin();
}

Result<void> Recorder::open_window() {
  reader_ = std::make_unique<capture::RingReader>(
      events_->sources(), capture::RingReader::Limits{},
      bpf_ ? bpf_->sources() : std::vector<capture::BatchSource*>{});
  reader_->start();
  if (auto enabled = events_->enable(); !enabled) return enabled;
  if (bpf_) {
    if (auto begun = bpf_->begin(target().pids()); !begun) return begun;
  }
  output_.set_on_cpu_event(events_->on_cpu_event(), events_->sample_period_ns());
  output_.begin_window(monotonic_ns());
  note_limits();
  recording_ = std::make_unique<evidence::Recording>(
      evidence::Recording::Parts{proc_, *perf_, stages_->spaces, *stages_->unwinder,
                                 stages_->stacks, *sites_, stages_->tasks, output_.sink(),
                                 hot_source_, *data_names_, bpf_ ? &bpf_->programs() : nullptr,
                                 stages_->symbolizer.get()},
      window_begin());
  if (auto adopted = adopt_target(); !adopted) return adopted;
  if (bpf_) bpf_->watch(stages_->tasks.pids());
  recording_->add_existing_threads();
  if (auto released = target().release(); !released) return released;
  consumer_ = std::make_unique<Consumer>(
      Consumer::Parts{*reader_, *events_, bpf_.get(), *recording_, stages_->tasks, *stack_policy_,
                      stages_->stacks, *stages_->unwinder, output_.sink(), heap_.get(),
                      os::CpuWatch::open()},
      window_begin());
  consumer_->start();
  start_counters();
  return output_.keep_committing([this] { return consumer_->complete_until(); });
}

void Recorder::start_counters() {
  stages_->processes.write_host_facts();
  counters_sink_ = std::make_unique<CountersToRun>(output_.writer());
  capture::CounterOptions counter_options;
  if (options_.counters) counter_options.hardware = &os::real_counter_kernel();
  read_devices(options_.reader_program, counter_options);
  counters_ = std::make_unique<capture::CounterPoller>(
      counter_options, [this] { return consumer_->live_tasks(); }, *counters_sink_,
      next_series_id_);
  counters_->poll_all(monotonic_ns());
  if (LoadDriver* load = target().load())
    load->begin_window(output_.writer(), next_series_id_, window_begin());
}

// The events are on now: what changed since the target was first looked at (it ended, forked,
// executed another program) is found by looking again; what changes from here on has a record.
Result<void> Recorder::adopt_target() {
  if (!target().attached()) {
    stages_->tasks.adopt_launched(target().pids().front(), options_.target.command.front(),
                                  window_begin());
    return {};
  }
  std::map<pid_t, std::string> exes;
  for (const target::ResolvedProcess& process : target().resolved().processes)
    exes[process.pid] = process.exe;
  if (auto found = target().resolve(); !found) return found;
  stages_->tasks.adopt(target().resolved(), window_begin());
  for (const target::ResolvedProcess& process : target().resolved().processes) {
    auto before = exes.find(process.pid);
    if (before == exes.end() || before->second != process.exe) {
      stages_->spaces.executed(process.pid);
      stages_->spaces.load(process.pid);
      continue;
    }
    for (const auto& [start, mapping] : stages_->spaces.of(process.pid).all()) {
      output_.sink().add_mapping(*stages_->tasks.process(process.pid), mapping, window_begin());
    }
  }
  return {};
}

std::optional<EndReason> Recorder::poll(TimeNs now) {
  if (output_.error()) return EndReason::write_failed;
  bool launched_gone = target().launched_has_ended();
  if (launched_gone) consumer_->expect_no_target();
  if (consumer_->target_gone() || (launched_gone && !options_.target.include_children))
    return EndReason::target_exited;
  counters_->poll(now);
  stages_->processes.write_new_facts();
  show(Phase::recording);
  return std::nullopt;
}

void Recorder::end(EndReason) {
  TimeNs window_end = monotonic_ns();
  output_.end_window(window_end);
  recording_->end_window(window_end);
  consumer_->close_events(window_end);
  stages_->processes.write_new_facts();
  counters_->poll_all(window_end);
  if (LoadDriver* load = target().load()) load->end_window(window_begin(), window_end);
  reader_->stop();
  consumer_->join();
  recording_->finish(window_end);
  if (heap_) heap_->end(window_end);
  if (stack_policy_->filled_in_kernel_stacks()) {
    output_.sink().add_note(
        {"kernel stacks",
         "the machine switched more than 3,000 times a second: kernel frames of waits were "
         "taken in a tenth of the time, and in the rest are those of the same user stack before",
         ""});
  }
  if (bpf_) bpf_->note_limits(*recording_->bpf_evidence(), output_.sink());
}

void Recorder::finish(EndReason reason) {
  show(Phase::naming);
  stages_->finish(options_.source, {&heap_source_, &hot_source_});
  outcome_.samples = recording_->counts().samples;
  outcome_.waits = recording_->counts().waits;
  outcome_.lost = recording_->counts().lost;
  if (heap_) {
    outcome_.allocations = heap_->evidence()->counts().allocations;
    outcome_.holds = heap_->holds();
  }
  if (bpf_) outcome_.bpf = bpf_->report(*recording_->bpf_evidence());
  outcome_.write_error = output_.finish(reason);
}

void Recorder::show(Phase phase, TimeNs since) {
  RecordProgress state;
  state.now = monotonic_ns();
  state.begin = since;
  state.duration_ns = options_.duration_ns;
  state.phase = phase;
  if (recording_) {
    state.samples = recording_->counts().samples;
    state.waits = recording_->counts().waits;
    state.lost = recording_->counts().lost;
  }
  if (consumer_) {
    capture::LiveTasks tasks = consumer_->live_tasks();
    state.processes = tasks.processes.size();
    state.threads = tasks.threads.size();
  }
  progress_(state);
}

}  // namespace

Result<RecordOutcome> record(const RecordOptions& options, const std::atomic<bool>& stop,
                             const std::function<void(const RecordProgress&)>& progress) {
  return Recorder(options, stop, progress).run();
}

}  // namespace assay::session
