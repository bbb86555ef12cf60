#include "session/record/bpf_backend.h"

#include "base/clock.h"

namespace assay::session {
namespace {

// What can be told before anything is tried, in words that are better than the kernel's.
Result<void> may_work(const os::Capabilities& machine) {
  if (!machine.initial_pid_namespace)
    return fail_with_remedy("in a PID namespace the kernel's pids are not ours",
                            "run assay on the host, with --pid or --cgroup");
  if (!machine.btf)
    return fail_with_remedy("this kernel has no type information (no /sys/kernel/btf/vmlinux)",
                            "boot a kernel built with CONFIG_DEBUG_INFO_BTF");
  if (machine.lockdown == "confidentiality")
    return fail_with_remedy("the kernel is locked down (confidentiality)",
                            "boot without lockdown=confidentiality");
  if (os::user_reads_may_lock_up(machine.kernel))
    return fail_with_remedy(fmt::format("Linux {} can lock up when a BPF program reads user memory",
                                        machine.kernel.text()),
                            "update to a kernel with the fix: 6.1.36, 6.3.10, or 6.4 and newer");
  bool allowed = machine.has(os::Capability::sys_admin) ||
                 (machine.has(os::Capability::bpf) && machine.has(os::Capability::perfmon));
  if (!allowed)
    return fail_with_remedy("CAP_BPF and CAP_PERFMON are needed",
                            "run as root, or: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,"
                            "cap_syslog,cap_ipc_lock+ep $(command -v assay)");
  return {};
}

}  // namespace

Result<std::unique_ptr<BpfBackend>> BpfBackend::open(const os::Capabilities& machine,
                                                     const Options& options) {
  if (auto may = may_work(machine); !may) return std::unexpected(may.error());
  auto backend = std::make_unique<BpfBackend>();
  capture::BpfOptions programs;
  programs.children = options.children;
  programs.wakeups = options.wakeups;
  programs.check_cache = options.check.cache;
  programs.truth_one_in = options.check.truth_one_in;
  programs.cpus = machine.online_cpus;
  auto loaded = capture::BpfPrograms::load(programs);
  if (!loaded) return std::unexpected(loaded.error());
  backend->programs_ = std::move(*loaded);

  capture::EventOptions events;
  events.frequency_hz = options.frequency_hz;
  events.children = options.children;
  events.cpus = machine.online_cpus;
  events.side_band_only = true;
  auto side_band =
      capture::EventSet::open(os::real_perf_kernel(), events, [] { return std::vector<pid_t>{}; });
  if (!side_band) return std::unexpected(side_band.error());
  backend->side_band_ = std::move(*side_band);
  backend->on_cpu_ = backend->side_band_->bare_on_cpu_attributes();
  return backend;
}

Result<void> try_bpf(const os::Capabilities& machine) {
  auto backend = BpfBackend::open(machine, {});
  if (!backend) return std::unexpected(backend.error());
  return {};
}

void BpfBackend::join(evidence::AddressSpaces& spaces, unwind::Unwinder& unwinder) {
  tables_ = std::make_unique<evidence::BpfTables>(*programs_, spaces, unwinder);
}

Result<void> BpfBackend::begin(const std::vector<pid_t>& pids) {
  if (auto attached = programs_->attach(on_cpu_); !attached) return attached;
  watch(pids);
  return {};
}

void BpfBackend::watch(const std::vector<pid_t>& pids) {
  for (pid_t pid : pids) {
    if (!watched_.insert(pid).second) continue;
    if (!tables_->watch(pid, monotonic_ns())) is_full_ = true;
  }
}

void BpfBackend::refresh(const evidence::Tasks& tasks) {
  TimeNs now = monotonic_ns();
  tables_->refresh(now);
  std::erase_if(watched_, [&](pid_t pid) {
    bool gone = !tasks.contains(pid);
    if (gone) tables_->exited(pid, now);
    return gone;
  });
}

void BpfBackend::note_limits(const evidence::BpfEvidence& evidence, evidence::Sink& sink) const {
  capture::BpfCounters counts = programs_->counters();
  if (is_full_)
    sink.add_note({"BPF",
                   fmt::format("more than {} processes: the rest were not recorded",
                               +capture::bpf::kMostProcesses),
                   "record a smaller target"});
  if (tables_->missing_tables() > 0)
    sink.add_note({"BPF",
                   fmt::format("the unwind tables of {} modules found no room in the kernel: "
                               "stacks through them were walked from copies",
                               tables_->missing_tables()),
                   ""});
  TimeNs now = monotonic_ns();
  if (uint64_t untracked = counts[capture::bpf::kCountNoMemory]; untracked > 0) {
    sink.add_note({"BPF",
                   "some threads or children could not be followed: the kernel had no room for "
                   "them",
                   ""});
    sink.add_loss({model::LossKind::untracked_threads, -1, now, untracked});
  }
  if (uint64_t limited = counts[capture::bpf::kCountRawLimited]; limited > 0) {
    sink.add_note({"BPF",
                   fmt::format("{} stacks that the kernel could not walk were too many to copy "
                               "and have no frames",
                               limited),
                   ""});
    sink.add_loss({model::LossKind::dropped_stacks, -1, now, limited});
  }
  if (evidence.frame_pointer_stacks() > 0)
    sink.add_note({"stacks",
                   fmt::format("{} of {} walks followed frame pointers through code without "
                               "call-frame information, where callers may be missing",
                               evidence.frame_pointer_stacks(), evidence.stacks()),
                   ""});
}

BpfReport BpfBackend::report(const evidence::BpfEvidence& evidence) const {
  return {programs_->counters(),
          evidence.truth(),
          evidence.stacks(),
          evidence.raw_stacks(),
          evidence.frame_pointer_stacks(),
          tables_->table_bytes(),
          programs_->ring_bytes()};
}

std::string to_text(const BpfReport& report) {
  namespace bpf = capture::bpf;
  static constexpr std::pair<int, const char*> kNames[] = {
      {bpf::kCountSwitches, "switches"},
      {bpf::kCountWaits, "waits"},
      {bpf::kCountSamples, "samples"},
      {bpf::kCountHits, "cache_hits"},
      {bpf::kCountWalks, "walks"},
      {bpf::kCountUncached, "uncached"},
      {bpf::kCountRaw, "raw"},
      {bpf::kCountRawLimited, "raw_limited"},
      {bpf::kCountRingFull, "ring_full"},
      {bpf::kCountStackLost, "stacks_lost"},
      {bpf::kCountNoMemory, "no_memory"},
      {bpf::kCountNoCache, "no_cache"},
      {bpf::kCountChecked, "cache_checked"},
      {bpf::kCountWrong, "cache_wrong"},
      {bpf::kCountMissedIn, "missed_in"},
  };
  std::string text;
  for (auto [counter, name] : kNames)
    text += fmt::format("{} {}\n", name, report.counters[static_cast<size_t>(counter)]);
  text += fmt::format("stacks {}\nraw_stacks {}\nframe_pointer_stacks {}\n", report.stacks,
                      report.raw_stacks, report.frame_pointer_stacks);
  text += fmt::format("table_bytes {}\nring_bytes {}\n", report.table_bytes, report.ring_bytes);
  text += fmt::format("compared {}\n", report.truth.compared);
  for (const auto& [cause, count] : report.truth.differences)
    text += fmt::format("differs {} {}\n", count, cause);
  if (!report.truth.first_difference.empty()) text += report.truth.first_difference + "\n";
  return text;
}

}  // namespace assay::session
