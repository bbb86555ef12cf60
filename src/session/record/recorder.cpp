#include "session/record/recorder.h"

#include <algorithm>
#include <map>

#include <sys/resource.h>
#include <unistd.h>

#include "capture/counters/poller.h"
#include "capture/perf/event_set.h"
#include "os/machine/capabilities.h"
#include "session/record/consumer.h"
#include "evidence/data_names.h"
#include "session/record/event_choice.h"
#include "session/heap/heap_capture.h"
#include "session/record/periodic_flush.h"
#include "evidence/recording.h"
#include "session/record/running_target.h"
#include "session/record/stages.h"
#include "evidence/wait_sites.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;  // how often the end of the capture is looked for

// Per-task capture needs a descriptor per thread, CPU and event.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class CountersToRun final : public capture::CounterSink {
 public:
  explicit CountersToRun(run::Writer& writer) : writer_(writer) {}
  void add_series(const model::Series& series) override { writer_.add_series(series); }
  void add_point(const model::Point& point) override { writer_.add_point(point); }
  void add_note(const model::QualityNote& note) override { writer_.add_note(note); }

 private:
  run::Writer& writer_;
};

class Recorder {
 public:
  Recorder(const RecordOptions& options, const std::atomic<bool>& stop,
           const std::function<void(const RecordProgress&)>& progress)
      : options_(options), stop_(stop), progress_(progress) {}

  Result<RecordOutcome> run();

 private:
  Result<RecordOutcome> capture();
  Result<void> prepare_heap();
  Result<void> open_run();
  void build_stages();
  Result<void> open_events();
  Result<void> begin_window();
  Result<void> adopt_target();
  void note_limits();
  void abandon_run();
  std::string wait_for_end();
  Result<RecordOutcome> end_window(const std::string& reason);
  void show(const char* phase);

  const RecordOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const RecordProgress&)>& progress_;
  os::ProcFs proc_;
  os::Capabilities machine_ = os::read_capabilities();
  model::RunInfo info_;
  RunningTarget target_{options_, stop_, proc_};
  // In the order of the path of a sample; destroyed in reverse.
  std::unique_ptr<run::Writer> writer_;
  std::unique_ptr<Stages> stages_;
  evidence::HotSource hot_source_;
  evidence::HotSource heap_source_;              // weighed by bytes
  std::unique_ptr<HeapCapture> heap_;  // null: allocations are not sampled
  std::unique_ptr<evidence::DataNames> data_names_;
  std::unique_ptr<evidence::WaitSites> sites_;
  std::unique_ptr<capture::EventSet> events_;
  std::unique_ptr<BpfBackend> bpf_;  // null: perf events alone
  std::vector<model::QualityNote> limits_;
  std::unique_ptr<evidence::StackPolicy> stack_policy_;
  std::unique_ptr<evidence::Recording> recording_;
  std::unique_ptr<capture::RingReader> reader_;
  std::unique_ptr<Consumer> consumer_;
  std::atomic<uint32_t> next_series_id_{0};
  std::unique_ptr<CountersToRun> counters_sink_;
  std::unique_ptr<capture::CounterPoller> counters_;
  std::unique_ptr<PeriodicFlush> flush_;
};

Result<RecordOutcome> Recorder::run() {
  if (auto free = run::Writer::check(options_.output, options_.overwrite); !free)
    return std::unexpected(free.error());
  auto outcome = capture();
  if (!outcome && target_.attached()) target_.stop_launched();
  return outcome;
}

// Into a running target at once, into a command when it is launched.
Result<void> Recorder::prepare_heap() {
  if (!options_.heap) return {};
  heap_ = std::make_unique<HeapCapture>(*options_.heap);
  if (options_.target.command.empty()) return {};
  auto extras = heap_->prepare_launch();
  if (!extras) return std::unexpected(extras.error());
  target_.set_extras(std::move(*extras));
  return {};
}

Result<RecordOutcome> Recorder::capture() {
  if (auto prepared = prepare_heap(); !prepared) return std::unexpected(prepared.error());
  auto found = target_.find([this](const char* phase, TimeNs begin) {
    info_.window_begin_ns = begin;
    show(phase);
  });
  if (!found) return std::unexpected(found.error());
  show("preparing");
  raise_descriptor_limit();  // after a launched command was forked: its limits are its own
  if (auto opened = open_events(); !opened) return std::unexpected(opened.error());
  if (heap_ && !target_.is_launched()) {
    if (auto attached = heap_->attach(target_.pids(), [this] { show("waiting"); }); !attached)
      return std::unexpected(attached.error());
  }
  if (auto opened = open_run(); !opened) return std::unexpected(opened.error());
  build_stages();
  if (auto begun = begin_window(); !begun) {
    abandon_run();
    return std::unexpected(begun.error());
  }
  return end_window(wait_for_end());
}

Result<void> Recorder::open_run() {
  info_.assay_version = ASSAY_VERSION;
  info_.backend = bpf_ ? "bpf" : "perf_event";
  info_.target = options_.target_text;
  info_.command_line = options_.command_line;
  info_.window_begin_ns = info_.window_end_ns = monotonic_ns();
  info_.utc_begin_ns = utc_ns();
  auto writer = run::Writer::create(options_.output, info_, options_.overwrite);
  if (!writer) return std::unexpected(writer.error());
  writer_ = std::move(*writer);
  return {};
}

void Recorder::build_stages() {
  stages_ = std::make_unique<Stages>(
      options_, options_.cache_dir, proc_, *writer_,
      [this](pid_t pid, const model::Mapping& mapping, const model::Module& module) {
        stages_->unwinder->prepare(pid, mapping, module);
        if (bpf_) bpf_->mapping_changed(pid);
      });
  data_names_ = std::make_unique<evidence::DataNames>(stages_->spaces, stages_->tracker, stages_->namer);
  sites_ = std::make_unique<evidence::WaitSites>(
      proc_, *stages_->symbolizer, stages_->spaces.kernel(),
      [this](pid_t pid, uint64_t address) { data_names_->waited_on(pid, address); });
  if (bpf_) bpf_->join(stages_->spaces, *stages_->unwinder);
  if (heap_)
    heap_->join({proc_, stages_->stacks, stages_->tracker, *writer_, heap_source_},
                stages_->spaces);
  // Tables are built before the window opens, so that the consumer need not stop for them; the
  // first kernel name makes the symbolizer read all of them.
  (void)stages_->symbolizer->resolve(stages_->spaces.kernel(), 0);
  for (const target::ResolvedProcess& process : target_.resolved().processes)
    stages_->spaces.load(process.pid);
}

Result<void> Recorder::open_events() {
  auto choice = choose_events(options_, machine_, [this] { return target_.threads(); });
  if (!choice) return std::unexpected(choice.error());
  events_ = std::move(choice->events);
  bpf_ = std::move(choice->bpf);
  limits_ = std::move(choice->notes);
  stack_policy_ = std::make_unique<evidence::StackPolicy>(*events_);
  return {};
}

void Recorder::note_limits() {
  for (const model::QualityNote& note : limits_) writer_->add_note(note);
  if (events_->untracked_threads() > 0) {
    writer_->add_loss({model::LossKind::untracked_threads, -1, info_.window_begin_ns,
                       events_->untracked_threads()});
  }
}

// Nothing was captured: no file is better than an empty one.
void Recorder::abandon_run() {
  events_->disable();
  if (bpf_) bpf_->end();
  reader_->stop();
  if (consumer_) consumer_->join();
  if (heap_) heap_->end(monotonic_ns());
  stages_->namer.finish();
  writer_.reset();
  unlink(options_.output.c_str());
}

Result<void> Recorder::begin_window() {
  reader_ = std::make_unique<capture::RingReader>(
      events_->sources(), capture::RingReader::Limits{},
      bpf_ ? bpf_->sources() : std::vector<capture::BatchSource*>{});
  reader_->start();
  if (auto enabled = events_->enable(); !enabled) return enabled;
  if (bpf_) {
    if (auto begun = bpf_->begin(target_.pids()); !begun) return begun;
  }
  info_.window_begin_ns = monotonic_ns();
  info_.utc_begin_ns = utc_ns();
  info_.window_end_ns = info_.window_begin_ns;
  info_.oncpu_event = events_->on_cpu_event();
  info_.sample_period_ns = events_->sample_period_ns();
  writer_->set_info(info_);
  note_limits();
  recording_ = std::make_unique<evidence::Recording>(
      evidence::Recording::Parts{proc_, *events_, stages_->spaces, *stages_->unwinder, stages_->stacks,
                       *sites_, stages_->tracker, *writer_, hot_source_, *data_names_,
                       bpf_ ? &bpf_->programs() : nullptr, stages_->symbolizer.get()},
      info_.window_begin_ns);
  if (auto adopted = adopt_target(); !adopted) return adopted;
  if (bpf_) bpf_->watch(stages_->tracker.pids());
  recording_->add_existing_threads();
  if (auto released = target_.release(); !released) return released;
  consumer_ = std::make_unique<Consumer>(
      Consumer::Parts{*reader_, *events_, bpf_.get(), *recording_, stages_->tracker, *stack_policy_,
                      stages_->stacks, *stages_->unwinder, *writer_, heap_.get()},
      info_.window_begin_ns);
  consumer_->start();
  stages_->processes.write_host_facts();
  counters_sink_ = std::make_unique<CountersToRun>(*writer_);
  capture::CounterOptions counter_options;
  if (options_.counters) counter_options.hardware = &os::real_counter_kernel();
  counters_ = std::make_unique<capture::CounterPoller>(
      counter_options, [this] { return consumer_->live_tasks(); }, *counters_sink_,
      next_series_id_);
  counters_->poll_all(monotonic_ns());
  if (LoadDriver* load = target_.load())
    load->begin_window(*writer_, next_series_id_, info_.window_begin_ns);
  if (auto flushed = writer_->flush(info_.window_begin_ns); !flushed) return flushed;
  flush_ =
      std::make_unique<PeriodicFlush>(*writer_, [this] { return consumer_->complete_until(); });
  return {};
}

// The events are on now: what changed since the target was first looked at (it ended, forked,
// executed another program) is found by looking again; what changes from here on has a record.
Result<void> Recorder::adopt_target() {
  if (!target_.attached()) {
    stages_->tracker.adopt_launched(target_.pids().front(), options_.target.command.front(),
                                    info_.window_begin_ns);
    return {};
  }
  std::map<pid_t, std::string> exes;
  for (const target::ResolvedProcess& process : target_.resolved().processes)
    exes[process.pid] = process.exe;
  if (auto found = target_.resolve(); !found) return found;
  stages_->tracker.adopt(target_.resolved(), info_.window_begin_ns);
  for (const target::ResolvedProcess& process : target_.resolved().processes) {
    auto before = exes.find(process.pid);
    if (before == exes.end() || before->second != process.exe) {
      stages_->spaces.executed(process.pid);
      stages_->spaces.load(process.pid);
      continue;
    }
    for (const auto& [start, mapping] : stages_->spaces.of(process.pid).all()) {
      writer_->add_mapping(stages_->tracker.process(process.pid)->id, mapping,
                           info_.window_begin_ns);
    }
  }
  return {};
}

std::string Recorder::wait_for_end() {
  TimeNs deadline =
      options_.duration_ns > 0 ? info_.window_begin_ns + options_.duration_ns : INT64_MAX;
  while (true) {
    TimeNs now = monotonic_ns();
    if (now >= deadline) return "time";
    if (stop_) return "interrupted";
    if (flush_->error()) return "write failed";
    bool launched_gone = target_.launched_has_ended();
    if (launched_gone) consumer_->expect_no_target();
    if (consumer_->target_gone() || (launched_gone && !options_.target.include_children))
      return "target exited";
    counters_->poll(now);
    if (LoadDriver* load = target_.load()) load->poll(now);
    stages_->processes.write_new_facts();
    show("recording");
    usleep(static_cast<useconds_t>(std::min(kTickNs, deadline - now) / 1000 + 1));
  }
}

Result<RecordOutcome> Recorder::end_window(const std::string& reason) {
  info_.window_end_ns = monotonic_ns();
  recording_->end_window(info_.window_end_ns);
  consumer_->close_events();
  stages_->processes.write_new_facts();
  counters_->poll_all(info_.window_end_ns);
  if (LoadDriver* load = target_.load())
    load->end_window(info_.window_begin_ns, info_.window_end_ns);
  reader_->stop();
  consumer_->join();
  info_.end_reason = reason;
  info_.finished = true;
  recording_->finish(info_.window_end_ns);
  if (heap_) heap_->end(info_.window_end_ns);
  if (stack_policy_->filled_in_kernel_stacks()) {
    writer_->add_note(
        {"kernel stacks",
         "the machine switched more than 3,000 times a second: kernel frames of waits were "
         "taken in a tenth of the time, and in the rest are those of the same user stack before",
         ""});
  }
  if (bpf_) bpf_->note_limits(*recording_->bpf_evidence(), *writer_);
  target_.stop_launched();
  show("naming");
  stages_->namer.finish();
  if (options_.source) stages_->keep_source({&heap_source_, &hot_source_});
  flush_->stop();

  RecordOutcome outcome;
  outcome.samples = recording_->counts().samples;
  outcome.waits = recording_->counts().waits;
  outcome.lost = recording_->counts().lost;
  if (heap_) {
    outcome.allocations = heap_->evidence()->counts().allocations;
    outcome.holds = heap_->holds();
  }
  outcome.launched_exit = target_.launched_exit();
  if (bpf_) outcome.bpf = bpf_->report(*recording_->bpf_evidence());
  outcome.write_error = flush_->error();
  if (!outcome.write_error) {
    if (auto finished = writer_->finish(info_); !finished) outcome.write_error = finished.error();
  }
  outcome.info = info_;
  return outcome;
}

void Recorder::show(const char* phase) {
  RecordProgress state;
  state.now = monotonic_ns();
  state.begin = info_.window_begin_ns;
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
