// Capabilities: what this machine lets Assay do, as far as the kernel's files tell it.
//
// In: /proc, /sys and the root directory (all parameters: tests hand in trees); out: plain values.
// What cannot be read is told as unknown, never guessed. What only trying can tell (does an event
// open, does a ring map) is tried by the code that needs it. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "os/machine/kernel_version.h"

namespace assay::os {

struct SystemRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string root = "";  // of the file system
};

// Numbers of linux/capability.h, those that a capture can use.
enum class Capability : uint8_t {
  ipc_lock = 14,
  sys_ptrace = 19,
  sys_admin = 21,
  sys_resource = 24,
  syslog = 34,
  perfmon = 38,
  bpf = 39,
};
const char* capability_name(Capability capability);  // "CAP_PERFMON"

inline constexpr uint64_t kUnlimited = UINT64_MAX;

struct Capabilities {
  uid_t uid = 0;
  uint64_t effective = 0;       // bit set of capability numbers
  int seccomp_mode = 0;         // 0 none, 1 strict, 2 filter
  uint32_t pid_namespaces = 1;  // 1: the machine's own, more: inside one

  std::optional<int> perf_event_paranoid;  // nullopt: the kernel has no perf events
  std::optional<int> kptr_restrict;
  std::optional<int> ptrace_scope;  // nullopt: no Yama, which is as 0
  std::optional<int> unprivileged_bpf_disabled;
  uint64_t perf_mlock_bytes = 0;  // rings per CPU that need no locked-memory budget
  uint64_t max_sample_rate = 0;
  uint64_t locked_memory_limit_bytes = 0;
  uint64_t open_files_limit = 0, open_files_hard_limit = 0;

  KernelVersion kernel;
  std::vector<int> online_cpus;
  bool initial_pid_namespace = true;  // our pids are the kernel's own

  std::string container;  // "docker", "podman", "kubernetes", "lxc", …; empty: none found
  std::string
      lockdown;      // "none", "integrity", "confidentiality"; empty: the kernel has no lockdown
  bool btf = false;  // /sys/kernel/btf/vmlinux is there and is one
  bool kernel_addresses = false;  // /proc/kallsyms shows real addresses
  std::string pmu;  // "cpu", "cpu_core, cpu_atom"; empty: no CPU has one the kernel knows

  bool has(Capability capability) const {
    return (effective >> static_cast<unsigned>(capability) & 1) != 0;
  }
  bool may_monitor() const { return has(Capability::perfmon) || has(Capability::sys_admin); }
};

Capabilities read_capabilities(const SystemRoots& roots = {});

// One row of /proc/PID/limits: soft and hard, kUnlimited for "unlimited".
struct LimitRow {
  uint64_t soft = 0, hard = 0;
};
std::optional<LimitRow> parse_limit(std::string_view limits, std::string_view name);

// "0-2,5" as 0, 1, 2, 5; empty when it is no such list.
std::vector<int> parse_cpu_list(std::string_view text);

// Whether the text of /proc/kallsyms (or its beginning) holds an address that is not zero.
bool shows_addresses(std::string_view kallsyms);

}  // namespace assay::os
