#include "session/recorder.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/counters/poller.h"
#include "capture/perf/event_set.h"
#include "os/capabilities.h"
#include "session/address_spaces.h"
#include "session/data_names.h"
#include "session/frame_namer.h"
#include "session/hot_source.h"
#include "session/live_tasks_board.h"
#include "session/periodic_flush.h"
#include "session/process_register.h"
#include "session/recording.h"
#include "session/stack_policy.h"
#include "session/wait_sites.h"
#include "target/tracker.h"

namespace assay::session {
namespace {

constexpr int64_t kTickNs = 100 * kNsPerMs;       // how often the end of the capture is looked for
constexpr int64_t kPublishNs = 200 * kNsPerMs;    // how often the list of living threads is renewed
constexpr int64_t kOpenWaitsNs = 200 * kNsPerMs;  // how often waits that are still open are noted
constexpr int64_t kResyncNs = 2 * kNsPerSecond;   // how often /proc is asked again after a loss
constexpr int64_t kPolicyNs = 50 * kNsPerMs;    // how often what is taken of stacks is reconsidered
constexpr int64_t kSnapshotNs = 50 * kNsPerMs;  // blocked threads' stacks where switches give none
constexpr int64_t kSnapshotSliceNs = 5 * kNsPerMs;  // at most this long at once, then records again
constexpr int64_t kLaunchedGraceNs = 5 * kNsPerSecond;

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
  Result<void> find_target();
  Result<void> launch();
  Result<void> start_load();
  Result<void> warm_up();
  Result<void> resolve_target();
  Result<void> open_run();
  void build_stages();
  Result<void> open_events();
  Result<void> open_bpf();
  Result<void> open_perf();
  Result<void> begin_window();
  Result<void> adopt_target();
  int allowed_frequency() const;
  void note_limits();
  void abandon_run();
  std::string wait_for_end();
  Result<RecordOutcome> end_window(const std::string& reason);
  void keep_source();
  void stop_launched();
  void consume();
  void consume_periodically(TimeNs now);
  void choose_stacks(TimeNs now);
  void publish_live_tasks();
  void announce(pid_t pid, const model::Mapping& mapping, const model::Module& module, bool is_new);
  std::vector<pid_t> list_threads() const;
  void show(const char* phase);

  const RecordOptions& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const RecordProgress&)>& progress_;
  os::ProcFs proc_;
  os::Capabilities machine_ = os::read_capabilities();
  model::RunInfo info_;
  std::optional<os::LaunchedProcess> launched_;
  std::optional<os::ExitStatus> launched_exit_;
  target::TargetSpec spec_ = options_.target;  // what to resolve; of a launched server, its pid
  bool attached_ = true;  // the target ran before the window; false: launched with the window
  target::ResolvedTarget resolved_;
  // In the order of the path of a sample; destroyed in reverse.
  std::unique_ptr<run::Writer> writer_;
  std::unique_ptr<ProcessRegister> processes_;
  std::unique_ptr<target::Tracker> tracker_;
  std::unique_ptr<symbol::Symbolizer> symbolizer_;
  std::unique_ptr<unwind::Unwinder> unwinder_;
  std::unique_ptr<FrameNamer> namer_;
  std::unique_ptr<AddressSpaces> spaces_;
  std::unique_ptr<StackBuilder> stacks_;
  HotSource hot_source_;
  std::unique_ptr<DataNames> data_names_;
  std::unique_ptr<WaitSites> sites_;
  std::unique_ptr<capture::EventSet> events_;
  std::unique_ptr<BpfBackend> bpf_;  // null: perf events alone
  std::optional<model::QualityNote> fallback_;
  std::unique_ptr<StackPolicy> stack_policy_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<capture::RingReader> reader_;
  std::unique_ptr<LoadDriver> load_;  // null: nothing drives the target
  std::atomic<uint32_t> next_series_id_{0};
  std::unique_ptr<CountersToRun> counters_sink_;
  std::unique_ptr<capture::CounterPoller> counters_;
  std::unique_ptr<PeriodicFlush> flush_;
  std::thread consumer_;
  LiveTasksBoard live_;
  std::atomic<TimeNs> complete_until_{0};
  std::atomic<bool> target_gone_{false};
  TimeNs next_snapshot_ = 0;
  TimeNs next_publish_ = 0;
  TimeNs next_policy_ = 0;
  TimeNs next_switch_tick_ = 0;
  TimeNs next_open_waits_ = 0;
  TimeNs next_resync_ = 0;
  uint64_t lost_at_resync_ = 0;
  int resyncs_due_ = 0;
  std::atomic<bool> launched_gone_{false};
  std::mutex events_mutex_;  // the consumer reopens events, the end of the window closes them
  bool events_closed_ = false;
};

Result<RecordOutcome> Recorder::run() {
  if (auto free = run::Writer::check(options_.output, options_.overwrite); !free)
    return std::unexpected(free.error());
  auto outcome = capture();
  if (!outcome && attached_) stop_launched();
  return outcome;
}

Result<RecordOutcome> Recorder::capture() {
  if (auto found = find_target(); !found) return std::unexpected(found.error());
  show("preparing");
  raise_descriptor_limit();  // after a launched command was forked: its limits are its own
  if (auto opened = open_events(); !opened) return std::unexpected(opened.error());
  if (auto opened = open_run(); !opened) return std::unexpected(opened.error());
  build_stages();
  if (auto begun = begin_window(); !begun) {
    abandon_run();
    return std::unexpected(begun.error());
  }
  return end_window(wait_for_end());
}

Result<void> Recorder::find_target() {
  if (!options_.load.what.empty()) {
    auto driver = LoadDriver::create(options_.load);
    if (!driver) return std::unexpected(driver.error());
    load_ = std::move(*driver);
  }
  if (!options_.target.command.empty()) {
    if (auto started = launch(); !started || !attached_) return started;
  }
  if (!launched_) {
    if (auto found = resolve_target(); !found) return found;
  }
  if (auto started = start_load(); !started) return started;
  if (auto warm = warm_up(); !warm) return warm;
  if (launched_) return resolve_target();
  return {};
}

// A command is held before its first instruction until the window opens, unless load is to drive
// it: then it is a server that has to come up first, and the window is of its work.
Result<void> Recorder::launch() {
  auto started = os::LaunchedProcess::start(options_.target.command);
  if (!started) return std::unexpected(started.error());
  launched_ = std::move(*started);
  attached_ = load_ != nullptr;
  if (!attached_) return {};
  spec_.command.clear();
  spec_.pids = {launched_->pid()};
  return launched_->release();
}

Result<void> Recorder::start_load() {
  if (!load_) return {};
  auto gone = [this] {
    if (launched_ && !launched_exit_) launched_exit_ = launched_->poll();
    return launched_exit_.has_value();
  };
  info_.window_begin_ns = monotonic_ns();
  if (auto ready = load_->wait_until_ready(stop_, gone, [this] { show("waiting for the server"); });
      !ready) {
    return ready;
  }
  if (stop_) return fail("interrupted before the capture began");
  return load_->start();
}

Result<void> Recorder::warm_up() {
  TimeNs warm = monotonic_ns() + options_.warmup_ns;
  info_.window_begin_ns = warm;
  while (!stop_ && monotonic_ns() < warm) {
    show("warming up");
    if (load_ && !load_->poll(monotonic_ns())) return fail("the load failed: {}", load_->fault());
    usleep(kTickNs / 1000);
  }
  return {};
}

Result<void> Recorder::resolve_target() {
  target::Surroundings surroundings;
  surroundings.self = getpid();
  if (load_) surroundings.excluded = load_->pids();
  auto resolved = target::resolve(spec_, proc_, surroundings);
  if (!resolved) return std::unexpected(resolved.error());
  resolved_ = std::move(*resolved);
  return {};
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
  processes_ = std::make_unique<ProcessRegister>(proc_, *writer_);
  tracker_ =
      std::make_unique<target::Tracker>(proc_, *processes_, options_.target.include_children);
  symbol::Options symbols;
  symbols.cache_dir = options_.cache_dir;
  symbols.debuginfod = options_.debuginfod;
  symbolizer_ = symbol::Symbolizer::create(symbols);
  unwinder_ = unwind::Unwinder::create(options_.cache_dir);
  namer_ = std::make_unique<FrameNamer>(*symbolizer_, *writer_);
  spaces_ = std::make_unique<AddressSpaces>(
      proc_, [this](pid_t pid, const model::Mapping& mapping, const model::Module& module,
                    bool is_new) { announce(pid, mapping, module, is_new); });
  stacks_ = std::make_unique<StackBuilder>(
      *spaces_, *unwinder_, *writer_,
      [this](model::FrameId id, const model::Frame& frame) { namer_->add(id, frame); });
  data_names_ = std::make_unique<DataNames>(*spaces_, *tracker_, *namer_);
  sites_ = std::make_unique<WaitSites>(
      proc_, *symbolizer_, spaces_->kernel(),
      [this](pid_t pid, uint64_t address) { data_names_->waited_on(pid, address); });
  if (bpf_) bpf_->join(*spaces_, *unwinder_);
  // Tables are built before the window opens, so that the consumer need not stop for them; the
  // first kernel name makes the symbolizer read all of them.
  (void)symbolizer_->resolve(spaces_->kernel(), 0);
  for (const target::ResolvedProcess& process : resolved_.processes) spaces_->load(process.pid);
}

void Recorder::announce(pid_t pid, const model::Mapping& mapping, const model::Module& module,
                        bool is_new) {
  if (is_new) {
    writer_->add_module(module);
    symbolizer_->add_module(pid, mapping, module);
  }
  if (mapping.end == 0) return;
  unwinder_->prepare(pid, mapping, module);
  if (bpf_) bpf_->mapping_changed(pid);
  if (const model::Process* process = tracker_->process(pid)) {
    writer_->add_mapping(process->id, mapping, monotonic_ns());
  }
}

std::vector<pid_t> Recorder::list_threads() const {
  if (!attached_) return {launched_->pid()};
  std::vector<pid_t> tids;
  for (pid_t pid : resolved_.pids()) {
    for (pid_t tid : proc_.tids(pid)) tids.push_back(tid);
  }
  return tids;
}

Result<void> Recorder::open_events() {
  if (options_.backend == Backend::perf) return open_perf();
  auto opened = open_bpf();
  if (opened || options_.backend == Backend::bpf) return opened;
  bpf_.reset();
  fallback_ = {"backend",
               "perf events record the switches, since BPF cannot: " + opened.error().what +
                   "; that costs the target more at every switch, and locks have no holders",
               opened.error().remedy};
  return open_perf();
}

Result<void> Recorder::open_bpf() {
  if (options_.per_task || options_.unprivileged)
    return fail("it needs all CPUs and privilege, and other was asked for");
  BpfBackend::Options options;
  options.frequency_hz = allowed_frequency();
  options.children = options_.target.include_children;
  options.wakeups = options_.wakeups;
  options.check = options_.bpf_check;
  auto backend = BpfBackend::open(machine_, options);
  if (!backend) return std::unexpected(backend.error());
  bpf_ = std::move(*backend);
  events_ = bpf_->take_side_band();
  stack_policy_ = std::make_unique<StackPolicy>(*events_);
  return {};
}

Result<void> Recorder::open_perf() {
  capture::EventOptions options;
  options.frequency_hz = allowed_frequency();
  options.children = options_.target.include_children;
  options.wakeups = options_.wakeups;
  options.cpus = machine_.online_cpus;
  options.probe_switches = true;
  options.global_pids = machine_.initial_pid_namespace;
  if (options_.per_task) options.first_tier = capture::Tier::per_task;
  if (options_.unprivileged) options.first_tier = capture::Tier::user_only;
  auto events =
      capture::EventSet::open(os::real_perf_kernel(), options, [this] { return list_threads(); });
  if (!events) return std::unexpected(events.error());
  events_ = std::move(*events);
  stack_policy_ = std::make_unique<StackPolicy>(*events_);
  return {};
}

// The kernel throttles events that sample faster than its limit, which would look like idle time.
int Recorder::allowed_frequency() const {
  auto most = static_cast<int>(std::min<uint64_t>(machine_.max_sample_rate, INT32_MAX));
  return most > 0 ? std::min(options_.frequency_hz, most) : options_.frequency_hz;
}

void Recorder::note_limits() {
  if (allowed_frequency() < options_.frequency_hz) {
    writer_->add_note(
        {"frequency",
         fmt::format("the kernel allows {} samples a second at most: {} were asked for",
                     allowed_frequency(), options_.frequency_hz),
         fmt::format("sudo sysctl -w kernel.perf_event_max_sample_rate={}",
                     options_.frequency_hz)});
  }
  for (const model::QualityNote& note : events_->notes()) writer_->add_note(note);
  if (fallback_) writer_->add_note(*fallback_);
  if (events_->untracked_threads() > 0) {
    writer_->add_loss({model::LossKind::untracked_threads, -1, info_.window_begin_ns,
                       events_->untracked_threads()});
  }
}

// Nothing was captured: no file is better than an empty one.
void Recorder::abandon_run() {
  {
    std::lock_guard lock(events_mutex_);
    events_closed_ = true;
    events_->disable();
    if (bpf_) bpf_->end();
  }
  reader_->stop();
  if (consumer_.joinable()) consumer_.join();
  namer_->finish();
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
    if (auto begun = bpf_->begin(!attached_ ? std::vector{launched_->pid()} : resolved_.pids());
        !begun)
      return begun;
  }
  info_.window_begin_ns = monotonic_ns();
  info_.utc_begin_ns = utc_ns();
  info_.window_end_ns = info_.window_begin_ns;
  info_.oncpu_event = events_->on_cpu_event();
  info_.sample_period_ns = events_->sample_period_ns();
  writer_->set_info(info_);
  note_limits();
  complete_until_ = info_.window_begin_ns;
  recording_ = std::make_unique<Recording>(
      Recording::Parts{proc_, *events_, *spaces_, *unwinder_, *stacks_, *sites_, *tracker_,
                       *writer_, hot_source_, *data_names_, bpf_ ? &bpf_->programs() : nullptr,
                       symbolizer_.get()},
      info_.window_begin_ns);
  if (auto adopted = adopt_target(); !adopted) return adopted;
  if (bpf_) bpf_->watch(tracker_->pids());
  recording_->add_existing_threads();
  if (!attached_) {
    if (auto released = launched_->release(); !released) return released;
  }
  publish_live_tasks();
  // From here on the tracker, the spaces and the stacks are the consumer's.
  consumer_ = std::thread([this] { consume(); });
  processes_->write_host_facts();
  counters_sink_ = std::make_unique<CountersToRun>(*writer_);
  capture::CounterOptions counter_options;
  if (options_.counters) counter_options.hardware = &os::real_counter_kernel();
  counters_ = std::make_unique<capture::CounterPoller>(
      counter_options, [this] { return live_.read(); }, *counters_sink_, next_series_id_);
  counters_->poll_all(monotonic_ns());
  if (load_) load_->begin_window(*writer_, next_series_id_, info_.window_begin_ns);
  if (auto flushed = writer_->flush(info_.window_begin_ns); !flushed) return flushed;
  flush_ = std::make_unique<PeriodicFlush>(*writer_, [this] { return complete_until_.load(); });
  return {};
}

// The events are on now: what changed since the target was first looked at (it ended, forked,
// executed another program) is found by looking again; what changes from here on has a record.
Result<void> Recorder::adopt_target() {
  if (!attached_) {
    tracker_->adopt_launched(launched_->pid(), options_.target.command.front(),
                             info_.window_begin_ns);
    return {};
  }
  std::map<pid_t, std::string> exes;
  for (const target::ResolvedProcess& process : resolved_.processes)
    exes[process.pid] = process.exe;
  if (auto found = resolve_target(); !found) return found;
  tracker_->adopt(resolved_, info_.window_begin_ns);
  for (const target::ResolvedProcess& process : resolved_.processes) {
    auto before = exes.find(process.pid);
    if (before == exes.end() || before->second != process.exe) {
      spaces_->executed(process.pid);
      spaces_->load(process.pid);
      continue;
    }
    for (const auto& [start, mapping] : spaces_->of(process.pid).all()) {
      writer_->add_mapping(tracker_->process(process.pid)->id, mapping, info_.window_begin_ns);
    }
  }
  return {};
}

void Recorder::consume() {
  pthread_setname_np(pthread_self(), "assay-consumer");
  // Among thousands of runnable threads an ordinary one would fall behind the rings. Needs
  // privilege.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -10);
  while (auto batch = reader_->next()) {
    TimeNs now = batch->drained_at;
    recording_->consume(std::move(*batch));
    if (bpf_) bpf_->refresh(*tracker_);
    complete_until_ = std::max(complete_until_.load(), recording_->complete_until());
    consume_periodically(now);
    recording_->take_first_snapshots(kSnapshotSliceNs);
  }
}

void Recorder::consume_periodically(TimeNs now) {
  if (now >= next_publish_) {
    next_publish_ = now + kPublishNs;
    publish_live_tasks();
    if (tracker_->process_count() == 0) target_gone_ = true;
  }
  if (now >= next_open_waits_) {
    next_open_waits_ = now + kOpenWaitsNs;
    writer_->put_open_waits(recording_->open_waits());
  }
  if (recording_->counts().lost > lost_at_resync_) {
    lost_at_resync_ = recording_->counts().lost;
    resyncs_due_ = 2;  // the tracker lets go of a thread that it misses twice
  }
  if (now >= next_resync_ && (resyncs_due_ > 0 || launched_gone_)) {
    next_resync_ = now + kResyncNs;
    resyncs_due_ = std::max(0, resyncs_due_ - 1);
    recording_->resynchronise(now);
  }
  choose_stacks(now);
  if (!events_->has_off_cpu_stacks() && now >= next_snapshot_) {
    next_snapshot_ = now + kSnapshotNs;
    recording_->snapshot_blocked_threads();
  }
}

void Recorder::choose_stacks(TimeNs now) {
  std::lock_guard lock(events_mutex_);
  if (events_closed_ || bpf_) return;
  if (now >= next_switch_tick_) {
    next_switch_tick_ = now + StackPolicy::kSwitchTickNs;
    stack_policy_->pace_kernel_stacks(recording_->switches(), now);
  }
  if (now >= next_policy_) {
    next_policy_ = now + kPolicyNs;
    stack_policy_->reconsider(unwinder_->stats(), stacks_->take_needs());
  }
}

void Recorder::publish_live_tasks() {
  capture::LiveTasks tasks;
  for (pid_t pid : tracker_->pids()) tasks.processes.push_back({tracker_->process(pid)->id, pid});
  for (pid_t tid : tracker_->tids()) {
    const target::TrackedTask& task = *tracker_->find(tid);
    tasks.threads.push_back({task.thread, task.pid, tid});
  }
  live_.publish(std::move(tasks));
}

std::string Recorder::wait_for_end() {
  TimeNs deadline =
      options_.duration_ns > 0 ? info_.window_begin_ns + options_.duration_ns : INT64_MAX;
  while (true) {
    TimeNs now = monotonic_ns();
    if (now >= deadline) return "time";
    if (stop_) return "interrupted";
    if (flush_->error()) return "write failed";
    if (launched_ && !launched_exit_) launched_exit_ = launched_->poll();
    if (launched_exit_) launched_gone_ = true;
    if (target_gone_ || (launched_exit_ && !options_.target.include_children))
      return "target exited";
    counters_->poll(now);
    if (load_) load_->poll(now);
    processes_->write_new_facts();
    show("recording");
    usleep(static_cast<useconds_t>(std::min(kTickNs, deadline - now) / 1000 + 1));
  }
}

Result<RecordOutcome> Recorder::end_window(const std::string& reason) {
  info_.window_end_ns = monotonic_ns();
  recording_->end_window(info_.window_end_ns);
  {
    std::lock_guard lock(events_mutex_);
    events_closed_ = true;
    events_->disable();
    if (bpf_) bpf_->end();
  }
  processes_->write_new_facts();
  counters_->poll_all(info_.window_end_ns);
  if (load_) load_->end_window(info_.window_begin_ns, info_.window_end_ns);
  reader_->stop();
  consumer_.join();
  info_.end_reason = reason;
  info_.finished = true;
  recording_->finish(info_.window_end_ns);
  if (stack_policy_->filled_in_kernel_stacks()) {
    writer_->add_note(
        {"kernel stacks",
         "the machine switched more than 3,000 times a second: kernel frames of waits were "
         "taken in a tenth of the time, and in the rest are those of the same user stack before",
         ""});
  }
  if (bpf_) bpf_->note_limits(*recording_->bpf_evidence(), *writer_);
  stop_launched();
  show("naming");
  namer_->finish();
  keep_source();
  flush_->stop();

  RecordOutcome outcome;
  outcome.samples = recording_->counts().samples;
  outcome.waits = recording_->counts().waits;
  outcome.lost = recording_->counts().lost;
  outcome.launched_exit = launched_exit_;
  if (bpf_) outcome.bpf = bpf_->report(*recording_->bpf_evidence());
  outcome.write_error = flush_->error();
  if (!outcome.write_error) {
    if (auto finished = writer_->finish(info_); !finished) outcome.write_error = finished.error();
  }
  outcome.info = info_;
  return outcome;
}

// Files are looked for as the target sees them, as long as it lives.
void Recorder::keep_source() {
  if (!options_.source) return;
  std::vector<pid_t> pids = tracker_->pids();
  symbol::SourceText text(pids.empty() ? 0 : *std::min_element(pids.begin(), pids.end()));
  hot_source_.write(stacks_->frames(), stacks_->stacks(), *symbolizer_, text, *writer_);
}

// A command that we started ends with the capture only when the user ended the capture, or when it
// was a server that we drove ourselves or were asked to stop.
void Recorder::stop_launched() {
  if (!launched_ || launched_exit_) return;
  if (load_ || options_.stop_launched) {
    launched_->terminate(kLaunchedGraceNs);  // our doing, and not how it ended
  } else if (stop_) {
    launched_exit_ = launched_->terminate(kLaunchedGraceNs);
  } else {
    launched_exit_ = launched_->poll();
  }
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
    capture::LiveTasks tasks = live_.read();
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
