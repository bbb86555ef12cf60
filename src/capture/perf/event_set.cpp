#include "capture/perf/event_set.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/units.h"
#include "capture/perf/switch_probe.h"

namespace assay::capture {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSmallestRing = 8 * kPage;
constexpr size_t kLargestSampleRing = 8u << 20;
constexpr size_t kLargestSideRing = 2u << 20;
constexpr const char* kParanoidRemedy =
    "run as root, or: sudo sysctl -w kernel.perf_event_paranoid=-1 (until the next boot)";
constexpr const char* kFilesRemedy = "ulimit -n 1048576";

bool is_denied(const Error& error) {
  return error.code == EACCES || error.code == EPERM;
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::per_cpu:
      return "per CPU";
    case Tier::per_task:
      return "per task";
    case Tier::user_only:
      return "per task, user code only";
  }
  return "?";
}

EventSet::EventSet(os::PerfKernel& kernel, const EventOptions& options)
    : kernel_(kernel), options_(options) {
  sample_period_ns_ = kNsPerSecond / std::max(1, options_.frequency_hz);
}

Result<std::unique_ptr<EventSet>> EventSet::open(os::PerfKernel& kernel,
                                                 const EventOptions& options,
                                                 const ListThreads& threads) {
  if (options.cpus.empty()) return fail("no CPU to open perf events on");
  std::unique_ptr<EventSet> set(new EventSet(kernel, options));
  set->choose_on_cpu_event();
  // Their payloads contain pids of the initial namespace, in every namespace of the reader.
  bool tracepoints = options.global_pids && !options.side_band_only;
  if (options.wakeups && tracepoints) set->find_waking_tracepoint();
  if (options.switch_tracepoint && tracepoints) set->switch_ = read_switch_tracepoint();
  if (options.wakeups && !options.global_pids) {
    set->note("wake-ups",
              "in a PID namespace wake-ups cannot be assigned to threads: run-queue delay comes from "
              "schedstat and wakers are not known",
              "run assay on the host, with --pid or --cgroup");
  }
  Error first_error;
  for (int tier = static_cast<int>(options.first_tier); tier <= static_cast<int>(Tier::user_only);
       ++tier) {
    auto opened = set->open_tier(static_cast<Tier>(tier), threads);
    if (!opened && set->give_up_switch_tracepoint())
      opened = set->open_tier(static_cast<Tier>(tier), threads);
    while (!opened && set->halve_rings()) opened = set->open_tier(static_cast<Tier>(tier), threads);
    if (opened && options.probe_switches && !set->switches_are_complete()) {
      set->switch_refused_ = true;
      if (set->give_up_switch_tracepoint())
        opened = set->open_tier(static_cast<Tier>(tier), threads);
    }
    if (opened) return set;
    set->close_all();
    if (options.side_band_only) return std::unexpected(opened.error());  // all CPUs or nothing
    set->ring_halvings_ = 0;
    if (first_error.what.empty()) first_error = opened.error();
    if (!is_denied(opened.error())) return std::unexpected(opened.error());
  }
  return fail_with_remedy("this machine does not allow perf events: " + first_error.what,
                          kParanoidRemedy, first_error.code);
}

// Tracepoints need more privilege than the context-switch event, so that event may work where they
// were refused.
bool EventSet::give_up_switch_tracepoint() {
  if (tier_ != Tier::per_cpu || switch_.id == 0 || !switch_refused_) return false;
  switch_.id = 0;
  close_all();
  return true;
}

bool EventSet::switches_are_complete() {
  if (!has_bare_switches()) return true;
  auto switch_all = [this](bool on) {
    for (const Event& event : events_) {
      if (event.kind == EventKind::off_cpu_bare)
        (void)(on ? kernel_.enable(event.fd.get()) : kernel_.disable(event.fd.get()));
    }
  };
  switch_all(true);
  std::vector<ProbeThread> probes = sleep_on_each_cpu(options_.cpus);
  switch_all(false);
  std::map<pid_t, int> switched_in;
  for (CpuRings& rings : rings_) {
    rings.samples->drain([&](std::span<const std::byte> bytes) {
      auto record = parse_record(bytes, *this);
      const auto* sample = record ? std::get_if<SampleRecord>(&record->body) : nullptr;
      auto change = sample != nullptr ? switch_of(sample->raw) : std::nullopt;
      if (change) ++switched_in[change->to];
    });
  }
  return all_returns_seen(probes, switched_in);
}

Result<void> EventSet::open_tier(Tier tier, const ListThreads& threads) {
  tier_ = tier;
  for (int cpu : options_.cpus) {
    rings_.emplace_back();
    rings_.back().cpu = cpu;
  }
  if (tier == Tier::per_cpu) return open_per_cpu();
  auto opened = open_per_task(threads);
  if (!opened) return opened;
  if (tier == Tier::per_task) {
    note("events", "events follow each thread, which costs something at every context switch",
         kParanoidRemedy);
  } else {
    note("kernel",
         "kernel code cannot be sampled: time in system calls has no stacks, and waits have "
         "durations but only occasional stacks",
         kParanoidRemedy);
  }
  return {};
}

bool EventSet::is_wanted(EventKind kind) const {
  if (kind == EventKind::off_cpu) return kernel_stacks_of_switches_;
  return kind != EventKind::off_cpu_bare || !kernel_stacks_of_switches_;
}

// The new event is switched on before the old one is switched off: a switch that is recorded twice
// is recognised, a switch that is not recorded would be lost.
void EventSet::record_kernel_stacks_of_switches(bool on) {
  if (!has_bare_switches() || on == kernel_stacks_of_switches_) return;
  kernel_stacks_of_switches_ = on;
  if (!enabled_) return;
  for (bool wanted : {true, false}) {
    for (const Event& event : events_) {
      bool concerned = event.kind == EventKind::off_cpu || event.kind == EventKind::off_cpu_bare;
      if (!concerned || is_wanted(event.kind) != wanted) continue;
      (void)(wanted ? kernel_.enable(event.fd.get()) : kernel_.disable(event.fd.get()));
    }
  }
}

std::vector<EventKind> EventSet::kinds() const {
  if (options_.side_band_only) return {EventKind::side_band};
  std::vector<EventKind> kinds{EventKind::side_band, EventKind::on_cpu};
  if (tier_ != Tier::user_only) kinds.push_back(EventKind::off_cpu);
  if (has_bare_switches()) kinds.push_back(EventKind::off_cpu_bare);
  if (tier_ == Tier::per_cpu && waking_.id != 0) kinds.push_back(EventKind::waking);
  return kinds;
}

Result<void> EventSet::open_per_cpu() {
  for (CpuRings& rings : rings_) {
    for (EventKind kind : kinds()) {
      auto opened = open_one(kind, -1, rings);
      if (opened) continue;
      if (kind == EventKind::waking) {  // not essential: continue without it
        waking_ = {};
        std::erase_if(events_, [](const Event& event) { return event.kind == EventKind::waking; });
        note("wake-ups",
             "the sched_waking tracepoint cannot be opened: run-queue delay comes from schedstat "
             "and wakers are not known",
             "run as root");
        continue;
      }
      return opened;
    }
  }
  return {};
}

Result<void> EventSet::open_per_task(const ListThreads& threads) {
  if (waking_.id != 0) {
    note("wake-ups",
         "a thread's own events do not show who wakes it: run-queue delay comes from schedstat and "
         "wakers are not known",
         kParanoidRemedy);
  }
  waking_ = {};
  std::set<pid_t> done;
  bool found_new = true;
  while (found_new) {  // a thread that started during the listing is found by listing again
    found_new = false;
    for (pid_t tid : threads()) {
      if (!done.insert(tid).second) continue;
      found_new = true;
      auto opened = open_thread(tid);
      if (opened || opened.error().code == ESRCH) continue;
      if (opened.error().code != EMFILE && opened.error().code != ENFILE) return opened;
      ++untracked_threads_;
    }
  }
  if (events_.empty() && untracked_threads_ > 0) {
    return fail_with_remedy("not one thread can be followed: too many open files", kFilesRemedy,
                            EMFILE);
  }
  if (events_.empty()) return fail("the target has no threads left");
  if (untracked_threads_ > 0) {
    note("threads",
         fmt::format("{} threads are not followed: too many open files", untracked_threads_),
         kFilesRemedy);
  }
  return {};
}

// Open all events of the thread or none: a thread that is seen on some CPUs only would give wrong
// times.
Result<void> EventSet::open_thread(pid_t tid) {
  size_t before = events_.size();
  for (CpuRings& rings : rings_) {
    for (EventKind kind : kinds()) {
      auto opened = open_one(kind, tid, rings);
      if (opened) continue;
      close_events_from(before);
      return opened;
    }
  }
  return {};
}

void EventSet::close_events_from(size_t first) {
  auto begin = events_.begin() + static_cast<ptrdiff_t>(first);
  auto closes = [&](int fd) {
    return std::any_of(begin, events_.end(),
                       [fd](const Event& event) { return event.fd.get() == fd; });
  };
  for (CpuRings& rings : rings_) {  // a ring goes with its owner
    if (closes(rings.side_fd)) rings.side.reset(), rings.side_fd = -1;
    if (closes(rings.sample_fd)) rings.samples.reset(), rings.sample_fd = -1;
  }
  events_.erase(begin, events_.end());
}

Result<void> EventSet::open_one(EventKind kind, pid_t pid, CpuRings& rings) {
  auto fd = kernel_.open(attributes(kind), pid, rings.cpu);
  if (!fd && kind == EventKind::off_cpu && has_bare_switches()) switch_refused_ = true;
  if (!fd) return std::unexpected(fd.error());
  return attach(kind, std::move(*fd), rings);
}

Result<void> EventSet::attach(EventKind kind, UniqueFd fd, CpuRings& rings) {
  auto id = kernel_.id(fd.get());
  if (!id) return std::unexpected(id.error());
  bool side = kind == EventKind::side_band;
  int& owner = side ? rings.side_fd : rings.sample_fd;
  if (owner >= 0) {
    auto redirected = kernel_.redirect_output(fd.get(), owner);
    if (!redirected) return redirected;
  } else {
    auto memory = kernel_.map_ring(fd.get(), ring_bytes(side));
    if (!memory) {
      rings_refused_ = is_denied(memory.error()) || memory.error().code == ENOMEM;
      return std::unexpected(memory.error());
    }
    owner = fd.get();
    (side ? rings.side : rings.samples) = std::make_unique<Ring>(std::move(*memory));
  }
  kind_by_id_[*id] = kind;
  events_.push_back({std::move(fd), kind, rings.cpu});
  return {};
}

size_t EventSet::ring_bytes(bool side) const {
  size_t share = options_.ring_budget_bytes / options_.cpus.size();
  size_t wanted =
      side ? std::min(share / 5, kLargestSideRing) : std::min(share * 4 / 5, kLargestSampleRing);
  return std::max(std::bit_floor(std::max(wanted, kSmallestRing)) >> ring_halvings_, kPage);
}

// Rings are locked memory, and without privilege all of a user's rings share one budget. If the
// first ring took all of it, nothing would be left for the others, so all rings shrink together.
bool EventSet::halve_rings() {
  if (!rings_refused_ || ring_bytes(false) <= kPage) return false;
  close_all();
  ++ring_halvings_;
  note("rings",
       "locked memory is limited: rings are smaller than wanted and may lose records under load",
       "sudo sysctl -w kernel.perf_event_mlock_kb=65536, or run as root");
  return true;
}

void EventSet::choose_on_cpu_event() {
  use_cycles_ = true;
  perf_event_attr attr = attributes(EventKind::on_cpu);
  attr.exclude_kernel = 1;
  attr.inherit = 0;
  auto opened = kernel_.open(attr, 0, -1);
  use_cycles_ = opened.has_value();
  on_cpu_event_ = use_cycles_ ? "cycles" : "cpu-clock";
  if (!use_cycles_ && is_denied(opened.error())) {
    note("on-CPU event",
         "hardware cycles may not be counted: samples are taken by timer (cpu-clock)",
         kParanoidRemedy);
  } else if (!use_cycles_) {
    note("on-CPU event",
         "no hardware PMU (a virtual machine, usually): samples are taken by timer (cpu-clock), "
         "which cannot see code that runs with interrupts off",
         "");
  }
}

void EventSet::find_waking_tracepoint() {
  waking_ = read_waking_tracepoint();
  if (waking_.id != 0) return;
  note("wake-ups",
       "wake-up tracepoints cannot be read: run-queue delay comes from schedstat and wakers are "
       "not known",
       "sudo mount -t tracefs tracefs /sys/kernel/tracing, and run as root");
}

void EventSet::note(std::string topic, std::string text, std::string remedy) {
  for (const auto& known : notes_) {
    if (known.topic == topic && known.text == text) return;
  }
  notes_.push_back({std::move(topic), std::move(text), std::move(remedy)});
}

void EventSet::close_all() {
  rings_.clear();
  events_.clear();
  kind_by_id_.clear();
  rings_refused_ = false;
  untracked_threads_ = 0;
  std::erase_if(notes_, [](const auto& n) { return n.topic == "rings"; });
}

std::vector<RingSource> EventSet::sources() {
  std::vector<RingSource> sources;
  for (CpuRings& rings : rings_) {
    if (rings.side) sources.push_back({rings.cpu, rings.side_fd, rings.side.get(), true});
    if (rings.samples) sources.push_back({rings.cpu, rings.sample_fd, rings.samples.get()});
  }
  return sources;
}

Result<void> EventSet::enable() {
  enabled_ = true;
  for (const Event& event : events_) {
    if (!is_wanted(event.kind)) continue;
    auto enabled = kernel_.enable(event.fd.get());
    if (!enabled && enabled.error().code != ESRCH) return enabled;
  }
  return {};
}

void EventSet::disable() {
  enabled_ = false;
  for (const Event& event : events_) (void)kernel_.disable(event.fd.get());
}

uint64_t EventSet::lost_records() const {
  uint64_t lost = lost_by_closed_;
  for (const Event& event : events_) lost += kernel_.lost(event.fd.get()).value_or(0);
  return lost;
}

Result<void> EventSet::set_off_cpu_stacks(uint32_t copy_bytes, bool user_chain) {
  if (tier_ != Tier::per_cpu) return fail("only per-CPU events can be opened anew");
  EventOptions before = options_;
  options_.off_cpu_copy_bytes = copy_bytes;
  options_.off_cpu_user_chain = user_chain;
  auto takes_switches = [](const Event& event) {
    return event.kind == EventKind::off_cpu || event.kind == EventKind::off_cpu_bare;
  };
  std::vector<Event> replaced;
  std::erase_if(events_, [&](Event& event) {
    if (!takes_switches(event)) return false;
    replaced.push_back(std::move(event));
    return true;
  });
  auto reopened = reopen_switches();
  if (reopened) {
    for (const Event& event : replaced) lost_by_closed_ += kernel_.lost(event.fd.get()).value_or(0);
  } else {
    std::erase_if(events_, takes_switches);
    for (Event& event : replaced) events_.push_back(std::move(event));
    options_ = before;
  }
  return reopened;
}

Result<void> EventSet::reopen_switches() {
  for (CpuRings& rings : rings_) {
    for (EventKind kind : {EventKind::off_cpu, EventKind::off_cpu_bare}) {
      if (kind == EventKind::off_cpu_bare && !has_bare_switches()) continue;
      auto opened = open_one(kind, -1, rings);
      if (opened && enabled_ && is_wanted(kind)) opened = kernel_.enable(events_.back().fd.get());
      if (!opened) return opened;
    }
  }
  return {};
}

Result<void> EventSet::reopen_cpu(int cpu) {
  auto rings = std::ranges::find(rings_, cpu, &CpuRings::cpu);
  if (rings == rings_.end()) return fail("it was not online when the capture began");
  if (tier_ != Tier::per_cpu) return {};
  // The owners of the rings stay open, since the rings are theirs.
  std::erase_if(events_, [&](const Event& event) {
    int fd = event.fd.get();
    if (event.cpu != cpu || fd == rings->side_fd || fd == rings->sample_fd) return false;
    lost_by_closed_ += kernel_.lost(fd).value_or(0);
    return true;
  });
  for (EventKind kind : kinds()) {
    auto opened = open_one(kind, -1, *rings);
    if (opened && enabled_ && is_wanted(kind)) opened = kernel_.enable(events_.back().fd.get());
    if (!opened) return opened;
  }
  return {};
}

EventKind EventSet::kind_of(uint64_t id) const {
  auto it = kind_by_id_.find(id);
  return it == kind_by_id_.end() ? EventKind::unknown : it->second;
}

}  // namespace assay::capture
