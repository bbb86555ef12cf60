#include "session/doctor/doctor.h"

#include <algorithm>

#include "base/units.h"
#include "os/sandbox/capture_rights.h"
#include "target/describe.h"

namespace assay::session {
namespace {

using capture::Tier;
using model::Check;
using model::CheckStatus;
using os::Capability;

constexpr int kDefaultFrequencyHz = 99;
constexpr size_t kMostProbedThreads = 4;  // enough to learn what is allowed, cheap for any target
constexpr uint64_t kEventsPerThread = 3;  // side band, on-CPU, off-CPU; on every CPU
constexpr uint64_t kFewThreads = 2000;
constexpr const char* kParanoidRemedy =
    "sudo sysctl -w kernel.perf_event_paranoid=-1 (until the next boot), or run as root";

Check ok(std::string name, std::string detail) {
  return {std::move(name), CheckStatus::ok, std::move(detail), "", ""};
}

Check limited(std::string name, std::string detail, std::string cost, std::string remedy) {
  return {std::move(name), CheckStatus::limited, std::move(detail), std::move(cost),
          std::move(remedy)};
}

Check missing(std::string name, std::string detail, std::string cost, std::string remedy) {
  return {std::move(name), CheckStatus::missing, std::move(detail), std::move(cost),
          std::move(remedy)};
}

// Inside a container the host's settings are not ours to change: the remedy is a way to start it.
std::string privilege_remedy(const os::Capabilities& machine, const std::string& otherwise) {
  std::string start;
  if (machine.container == "kubernetes") {
    start =
        "give the pod securityContext.capabilities.add: [PERFMON, SYS_PTRACE, SYSLOG] and "
        "seccompProfile.type: Unconfined";
  } else if (machine.container == "docker" || machine.container == "podman") {
    start = fmt::format(
        "{} run --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG --security-opt "
        "seccomp=unconfined …",
        machine.container);
  } else {
    return otherwise;
  }
  return machine.uid == 0 ? start : "run as root; if the container refuses that too: " + start;
}

Check check_events(const os::Capabilities& machine, const EventProbe& probe) {
  const std::string name = "perf events";
  if (!probe.events) {
    if (!machine.perf_event_paranoid) {
      return missing(name, "this kernel has none", "nothing can be captured",
                     "boot a kernel built with CONFIG_PERF_EVENTS");
    }
    return missing(name, probe.error.what, "nothing can be captured",
                   privilege_remedy(machine, kParanoidRemedy));
  }
  switch (probe.events->tier()) {
    case Tier::per_cpu:
      return ok(name, "opened on every CPU, kernel code included");
    case Tier::per_task:
      return limited(
          name, "only per thread, kernel code included",
          "something is paid at every context switch of the target, and wakers are not known",
          privilege_remedy(machine, kParanoidRemedy));
    case Tier::user_only:
      return limited(
          name, "only per thread, without kernel code",
          "time in system calls has no stacks; waits have durations, but stacks only now and then",
          privilege_remedy(machine, kParanoidRemedy));
  }
  return ok(name, "");
}

Check check_paranoid(const os::Capabilities& machine) {
  const std::string name = "perf_event_paranoid";
  if (!machine.perf_event_paranoid) {
    return missing(name, "not there: this kernel has no perf events", "nothing can be captured",
                   "boot a kernel built with CONFIG_PERF_EVENTS");
  }
  int level = *machine.perf_event_paranoid;
  std::string value = std::to_string(level);
  if (machine.may_monitor()) return ok(name, value + ", which does not bind us (CAP_PERFMON)");
  if (level < 0) return ok(name, value + ": everything is allowed to everyone");
  std::string remedy = privilege_remedy(machine, kParanoidRemedy);
  if (level == 0) {
    return limited(name, value + ": tracepoints are for root", "wakers are not known", remedy);
  }
  if (level == 1) {
    return limited(name, value + ": only one's own processes", "events follow each thread", remedy);
  }
  if (level == 2) {
    return limited(name, value + ": only one's own processes, without kernel code",
                   "no kernel stacks, few stacks of waits", remedy);
  }
  return missing(name, value + ": nothing without privilege", "nothing can be captured", remedy);
}

Check check_capabilities(const os::Capabilities& machine, const std::string& assay_path) {
  const std::string name = "capabilities";
  struct Use {
    bool held;
    const char* capability;
    const char* loss;
  };
  const Use uses[] = {
      {machine.may_monitor(), "CAP_PERFMON", "whole-machine events"},
      {machine.has(Capability::sys_ptrace), "CAP_SYS_PTRACE", "processes of other users"},
      {machine.has(Capability::syslog) || machine.kernel_addresses, "CAP_SYSLOG", "kernel names"},
      {machine.has(Capability::ipc_lock) || machine.may_monitor(), "CAP_IPC_LOCK", "large rings"},
  };
  std::vector<std::string> held, absent, losses;
  for (const Use& use : uses) {
    (use.held ? held : absent).push_back(use.capability);
    if (!use.held) losses.push_back(use.loss);
  }
  if (absent.empty())
    return ok(name, fmt::format("all that are of use: {}", fmt::join(held, ", ")));
  std::string remedy =
      fmt::format("sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep {}",
                  target::shell_word(assay_path.empty() ? "$(command -v assay)" : assay_path));
  return limited(name, fmt::format("without {}", fmt::join(absent, ", ")),
                 fmt::format("what they allow: {}", fmt::join(losses, ", ")),
                 privilege_remedy(machine, remedy));
}

// The least rights of each feature, and which of them are missing.
std::vector<Check> check_features(const os::Capabilities& machine) {
  std::vector<Check> checks;
  for (const os::FeatureRights& row : os::feature_rights()) {
    std::vector<std::string> needed, absent;
    for (int capability : row.capabilities) {
      needed.push_back(os::capability_text(capability));
      bool held = (machine.effective >> capability & 1) != 0 || machine.has(Capability::sys_admin);
      if (!held) absent.push_back(needed.back());
    }
    std::string name = fmt::format("rights: {}", row.feature);
    if (needed.empty()) {
      checks.push_back(ok(name, fmt::format("none; {}", row.without)));
    } else if (absent.empty()) {
      checks.push_back(ok(name, fmt::format("{}", fmt::join(needed, ", "))));
    } else {
      checks.push_back(limited(
          name, fmt::format("{}; missing: {}", fmt::join(needed, ", "), fmt::join(absent, ", ")),
          row.without, "docs/security.md, \"Without root\""));
    }
  }
  return checks;
}

Check check_locked_memory(const os::Capabilities& machine, const EventProbe& probe) {
  const std::string name = "locked memory";
  std::string limit = machine.locked_memory_limit_bytes == os::kUnlimited
                          ? "unlimited"
                          : format_bytes(machine.locked_memory_limit_bytes);
  std::string budget =
      fmt::format("{} per CPU for rings, limit {}", format_bytes(machine.perf_mlock_bytes), limit);
  if (!probe.events) return missing(name, budget, "no ring was mapped, since no event opened", "");
  auto is_about_rings = [](const model::QualityNote& note) { return note.topic == "rings"; };
  if (std::ranges::any_of(probe.events->notes(), is_about_rings)) {
    return limited(name, budget + "; the rings wanted could not be mapped",
                   "smaller rings, which may lose records under load",
                   "sudo sysctl -w kernel.perf_event_mlock_kb=65536, or run as root");
  }
  return ok(name, "rings of the wanted size were mapped");
}

Check check_open_files(const os::Capabilities& machine, const EventProbe& probe, size_t threads) {
  const std::string name = "open files";
  uint64_t hard = machine.open_files_hard_limit;
  std::string detail =
      fmt::format("at most {}", hard == os::kUnlimited ? "unlimited" : std::to_string(hard));
  bool per_thread = probe.events && probe.events->tier() != Tier::per_cpu;
  if (!per_thread) return ok(name, detail + ", of which a few per CPU are needed");
  uint64_t per = kEventsPerThread * std::max<size_t>(1, machine.online_cpus.size());
  uint64_t followed = hard / per;
  detail += fmt::format(", {} for each thread: {} threads can be followed", per, followed);
  if (followed >= std::max<uint64_t>(threads, kFewThreads)) return ok(name, detail);
  return limited(
      name, detail, "threads beyond that are counted, not captured",
      "sudo prlimit --pid $$ --nofile=1048576:1048576, then start Assay from this shell");
}

Check check_pmu(const os::Capabilities& machine, const EventProbe& probe) {
  const std::string name = "hardware counters";
  if (probe.events && probe.events->on_cpu_event() == "cycles") {
    return ok(name,
              "cycles can be sampled" + (machine.pmu.empty() ? "" : " (" + machine.pmu + ")"));
  }
  return limited(
      name,
      machine.pmu.empty() ? "this machine shows none (a virtual machine, usually)"
                          : "there (" + machine.pmu + "), but cycles could not be opened",
      "samples are taken by timer (cpu-clock): code that runs with interrupts off is not seen",
      machine.pmu.empty() ? "give the virtual machine a PMU (QEMU: -cpu host,pmu=on)"
                          : privilege_remedy(machine, kParanoidRemedy));
}

Check check_rate(const os::Capabilities& machine) {
  const std::string name = "sampling rate";
  std::string detail = fmt::format("up to {} Hz", machine.max_sample_rate);
  if (machine.max_sample_rate >= static_cast<uint64_t>(kDefaultFrequencyHz))
    return ok(name, detail);
  return limited(name, detail, "fewer samples: wider confidence intervals",
                 "sudo sysctl -w kernel.perf_event_max_sample_rate=25000");
}

Check check_kernel_names(const os::Capabilities& machine) {
  const std::string name = "kernel names";
  std::string setting =
      machine.kptr_restrict ? fmt::format(" (kptr_restrict {})", *machine.kptr_restrict) : "";
  if (machine.kernel_addresses) return ok(name, "/proc/kallsyms shows addresses" + setting);
  return limited(
      name, "/proc/kallsyms shows no addresses" + setting, "kernel frames have no names",
      privilege_remedy(
          machine,
          "sudo sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1, or run as root"));
}

Check check_wakeups(const EventProbe& probe) {
  const std::string name = "wake-ups";
  const std::string cost = "run-queue delay comes from schedstat alone, and wakers are not known";
  if (!probe.tracepoint_read) {
    return limited(name, "the sched_waking tracepoint cannot be read from tracefs", cost,
                   "sudo mount -t tracefs tracefs /sys/kernel/tracing, and run as root");
  }
  if (probe.events && probe.events->has_wakeups()) {
    bool mounted = !os::tracefs_mount_point().empty();
    return ok(name, mounted ? "tracefs is mounted and sched_waking opens"
                            : "tracefs is not mounted, but could be read; sched_waking opens");
  }
  return limited(name, "tracefs can be read, but sched_waking cannot be opened", cost,
                 kParanoidRemedy);
}

Check check_ptrace(const os::Capabilities& machine) {
  const std::string name = "ptrace_scope";
  int scope = machine.ptrace_scope.value_or(0);
  if (machine.has(Capability::sys_ptrace))
    return ok(name, std::to_string(scope) + ", which does not bind us");
  if (scope == 0) return ok(name, "0: one's own processes may be looked into");
  return limited(name, fmt::format("{}: not even one's own processes may be looked into", scope),
                 "waits that were open before the capture have no system call",
                 "sudo sysctl -w kernel.yama.ptrace_scope=0, or run as root");
}

Check check_confinement(const os::Capabilities& machine, const EventProbe& probe) {
  const std::string name = "container and seccomp";
  std::string where =
      machine.container.empty() ? "no container" : "in a container (" + machine.container + ")";
  if (machine.pid_namespaces > 1) where += ", with pids of its own";
  std::string filter = machine.seccomp_mode == 0 ? "no seccomp filter" : "a seccomp filter";
  if (probe.events || machine.seccomp_mode == 0) return ok(name, where + ", " + filter);
  return missing(name, where + ", " + filter, "the filter may be what refuses perf_event_open",
                 privilege_remedy(machine, "start Assay outside the filter"));
}

Check check_lockdown(const os::Capabilities& machine) {
  const std::string name = "lockdown";
  if (machine.lockdown != "confidentiality") {
    return ok(name, machine.lockdown.empty() ? "none" : machine.lockdown);
  }
  return limited(name, "confidentiality",
                 "tracepoints and kernel addresses are refused even to root",
                 "boot without lockdown=confidentiality");
}

Check check_btf(const os::Capabilities& machine) {
  const std::string name = "kernel types (BTF)";
  if (machine.btf) return ok(name, "/sys/kernel/btf/vmlinux is there");
  return limited(name, "/sys/kernel/btf/vmlinux is not there",
                 "nothing with perf events; a BPF program could not be loaded",
                 "boot a kernel built with CONFIG_DEBUG_INFO_BTF");
}

Check check_schedstat(const os::ProcFs& proc, pid_t self) {
  const std::string name = "scheduler statistics";
  if (proc.thread_schedstat(self, self)) return ok(name, "run-queue delay is counted per thread");
  return limited(name, "/proc/PID/task/TID/schedstat cannot be read",
                 "run-queue delay is known only from wake-ups",
                 "boot a kernel built with CONFIG_SCHED_INFO");
}

}  // namespace

Check check_bpf(const Result<void>& tried) {
  const std::string name = "BPF";
  if (tried) return ok(name, "the programs load: they record switches, wakers and lock holders");
  Check check = limited(name, tried.error().what,
                        "perf events record the switches, which costs the target several times as much; "
                        "locks have no holders and wakers no stacks",
                        tried.error().remedy);
  check.log = tried.error().detail;
  if (check.remedy.empty() && !check.log.empty())
    check.remedy = "assay doctor --verbose, which prints the verifier's log";
  return check;
}

EventProbe probe_events(const DoctorEnvironment& environment, const os::Capabilities& machine,
                        const std::vector<pid_t>& tids) {
  EventProbe probe;
  probe.tracepoint_read = environment.waking_tracepoint().has_value();
  capture::EventOptions options;
  options.frequency_hz = kDefaultFrequencyHz;
  options.wakeups = probe.tracepoint_read;
  options.cpus = machine.online_cpus.empty() ? std::vector<int>{0} : machine.online_cpus;
  std::vector<pid_t> some(tids.begin(), tids.begin() + static_cast<ptrdiff_t>(std::min(
                                                           tids.size(), kMostProbedThreads)));
  auto opened = capture::EventSet::open(*environment.perf, options, [&] { return some; });
  if (opened) {
    probe.events = std::move(*opened);
  } else {
    probe.error = opened.error();
  }
  return probe;
}

std::vector<Check> check_machine(const os::Capabilities& machine, const EventProbe& probe,
                                 size_t target_threads, const std::string& assay_path) {
  return {check_events(machine, probe),
          check_paranoid(machine),
          check_capabilities(machine, assay_path),
          check_locked_memory(machine, probe),
          check_open_files(machine, probe, target_threads),
          check_pmu(machine, probe),
          check_rate(machine),
          check_kernel_names(machine),
          check_wakeups(probe),
          check_ptrace(machine),
          check_confinement(machine, probe),
          check_lockdown(machine),
          check_btf(machine)};
}

std::vector<Check> run_doctor(const DoctorEnvironment& environment,
                              const target::TargetSpec* spec) {
  os::ProcFs proc(environment.roots.proc);
  os::Capabilities machine = os::read_capabilities(environment.roots);
  std::optional<Result<target::ResolvedTarget>> resolved;
  if (spec) {
    target::Surroundings surroundings;
    surroundings.self = environment.self;
    surroundings.command = "assay doctor";
    resolved = target::resolve(*spec, proc, surroundings);
  }
  std::vector<pid_t> tids{environment.self};
  size_t threads = 0;
  if (resolved && *resolved) {
    tids.clear();
    for (const auto& process : (*resolved)->processes) {
      threads += process.threads.size();
      for (const auto& thread : process.threads) tids.push_back(thread.tid);
    }
  }
  EventProbe probe = probe_events(environment, machine, tids);
  std::vector<Check> checks =
      check_machine(machine, probe, threads, proc.exe(environment.self).value_or(""));
  checks.push_back(check_bpf(environment.bpf(machine)));
  for (Check& check : check_features(machine)) checks.push_back(std::move(check));
  checks.push_back(check_schedstat(proc, environment.self));
  if (!resolved) return checks;
  if (!*resolved) {
    const Error& error = resolved->error();
    checks.push_back(missing("target", error.what, "there is nothing to capture", error.remedy));
    return checks;
  }
  for (Check& check : check_target(**resolved, proc, machine)) checks.push_back(std::move(check));
  return checks;
}

}  // namespace assay::session
