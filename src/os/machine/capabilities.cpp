#include "os/machine/capabilities.h"

#include <array>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "os/process/procfs.h"
#include "os/text_fields.h"

namespace assay::os {
namespace {

constexpr uint16_t kBtfMagic = 0xeb9f;
constexpr size_t kKallsymsBytes = 64 * 1024;  // enough to meet a symbol that is not per-CPU
constexpr uint64_t kBytesPerKb = 1024;

std::optional<int> read_setting(const SystemRoots& roots, const std::string& name) {
  auto text = read_text_file(roots.proc + "/sys/kernel/" + name);
  if (!text) return std::nullopt;
  auto value = parse_i64(*text);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

bool is_btf(const std::string& path) {
  auto head = read_text_file(path, sizeof kBtfMagic);
  uint16_t magic = 0;
  if (!head || head->size() < sizeof magic) return false;
  std::memcpy(&magic, head->data(), sizeof magic);
  return magic == kBtfMagic;
}

// "none [integrity] confidentiality": the one in brackets.
std::string bracketed(std::string_view text) {
  size_t open = text.find('['), close = text.find(']');
  if (open == text.npos || close == text.npos || close < open) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

std::string find_container(const SystemRoots& roots) {
  auto exists = [&](const char* path) {
    std::error_code ignored;
    return std::filesystem::exists(roots.root + path, ignored);
  };
  if (exists("/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (exists("/run/.containerenv")) return "podman";
  if (exists("/.dockerenv")) return "docker";
  // systemd-nspawn, lxc and podman tell their first process in its environment.
  if (auto environment = read_text_file(roots.proc + "/1/environ")) {
    for (std::string_view variable : split(*environment, '\0')) {
      constexpr std::string_view key = "container=";
      if (variable.starts_with(key)) return std::string(variable.substr(key.size()));
    }
  }
  auto cgroup = read_text_file(roots.proc + "/1/cgroup");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> marks{
      {{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"lxc", "lxc"}}};
  for (const auto& [mark, name] : marks) {
    if (cgroup && cgroup->find(mark) != std::string::npos) return std::string(name);
  }
  return "";
}

// Event sources whose events the hardware counts for the CPUs, by the kernel's naming.
std::string find_pmu(const SystemRoots& roots) {
  std::string found;
  std::error_code ignored;
  for (const char* name : {"cpu", "cpu_core", "cpu_atom", "armv8_pmuv3", "armv8_pmuv3_0"}) {
    if (!std::filesystem::exists(roots.sys + "/bus/event_source/devices/" + name, ignored))
      continue;
    found += (found.empty() ? "" : ", ") + std::string(name);
  }
  return found;
}

// The inode of the first PID namespace is fixed in the kernel's sources (PROC_PID_INIT_INO).
bool is_initial_pid_namespace(const SystemRoots& roots) {
  char link[64];
  ssize_t size = ::readlink((roots.proc + "/self/ns/pid").c_str(), link, sizeof link);
  return size < 0 || std::string_view(link, static_cast<size_t>(size)) == "pid:[4026531836]";
}

}  // namespace

const char* capability_name(Capability capability) {
  switch (capability) {
    case Capability::ipc_lock:
      return "CAP_IPC_LOCK";
    case Capability::sys_ptrace:
      return "CAP_SYS_PTRACE";
    case Capability::sys_admin:
      return "CAP_SYS_ADMIN";
    case Capability::sys_resource:
      return "CAP_SYS_RESOURCE";
    case Capability::syslog:
      return "CAP_SYSLOG";
    case Capability::perfmon:
      return "CAP_PERFMON";
    case Capability::bpf:
      return "CAP_BPF";
  }
  return "?";
}

std::optional<LimitRow> parse_limit(std::string_view limits, std::string_view name) {
  auto value = [](std::string_view word) -> std::optional<uint64_t> {
    return word == "unlimited" ? std::optional(kUnlimited) : parse_u64(word);
  };
  for (std::string_view line : split(limits, '\n')) {
    if (!line.starts_with(name)) continue;
    std::vector<std::string_view> words = split_words(line.substr(name.size()));
    if (words.size() < 2) continue;
    auto soft = value(words[0]), hard = value(words[1]);
    if (soft && hard) return LimitRow{*soft, *hard};
  }
  return std::nullopt;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr uint64_t kMostCpus = 1 << 16;
  std::vector<int> cpus;
  for (std::string_view part : split(trim(text), ',')) {
    size_t dash = part.find('-');
    auto first = parse_u64(part.substr(0, dash));
    auto last = dash == part.npos ? first : parse_u64(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMostCpus) return {};
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

bool shows_addresses(std::string_view kallsyms) {
  for (std::string_view line : split(kallsyms, '\n')) {
    std::string_view address = line.substr(0, line.find(' '));
    // The first symbols of x86-64 are offsets of per-CPU variables, small in every setting.
    constexpr uint64_t kLowestKernelAddress = uint64_t{1} << 32;
    auto number = parse_hex(address);
    if (number && *number >= kLowestKernelAddress) return true;
  }
  return false;
}

Capabilities read_capabilities(const SystemRoots& roots) {
  Capabilities found;
  if (auto status = read_text_file(roots.proc + "/self/status")) {
    if (auto bits = parse_hex(field_after(*status, "CapEff"))) found.effective = *bits;
    if (auto mode = parse_u64(field_after(*status, "Seccomp"))) {
      found.seccomp_mode = static_cast<int>(*mode);
    }
    std::vector<std::string_view> uids = split_words(field_after(*status, "Uid"));
    if (uids.size() > 1) found.uid = static_cast<uid_t>(parse_u64(uids[1]).value_or(0));
    size_t levels = split_words(field_after(*status, "NSpid")).size();
    found.pid_namespaces = static_cast<uint32_t>(std::max<size_t>(1, levels));
  }
  found.perf_event_paranoid = read_setting(roots, "perf_event_paranoid");
  found.kptr_restrict = read_setting(roots, "kptr_restrict");
  found.ptrace_scope = read_setting(roots, "yama/ptrace_scope");
  found.unprivileged_bpf_disabled = read_setting(roots, "unprivileged_bpf_disabled");
  found.perf_mlock_bytes =
      static_cast<uint64_t>(std::max(0, read_setting(roots, "perf_event_mlock_kb").value_or(0))) *
      kBytesPerKb;
  found.max_sample_rate = static_cast<uint64_t>(
      std::max(0, read_setting(roots, "perf_event_max_sample_rate").value_or(0)));
  if (auto limits = read_text_file(roots.proc + "/self/limits")) {
    LimitRow files = parse_limit(*limits, "Max open files").value_or(LimitRow{});
    found.open_files_limit = files.soft;
    found.open_files_hard_limit = files.hard;
    found.locked_memory_limit_bytes =
        parse_limit(*limits, "Max locked memory").value_or(LimitRow{}).soft;
  }
  if (auto text = read_text_file(roots.sys + "/devices/system/cpu/online")) {
    found.online_cpus = parse_cpu_list(*text);
  }
  found.initial_pid_namespace = is_initial_pid_namespace(roots);
  found.container = find_container(roots);
  if (auto text = read_text_file(roots.sys + "/kernel/security/lockdown")) {
    found.lockdown = bracketed(*text);
  }
  found.kernel = read_kernel_version(roots.proc);
  found.btf = is_btf(roots.sys + "/kernel/btf/vmlinux");
  if (auto text = read_text_file(roots.proc + "/kallsyms", kKallsymsBytes)) {
    found.kernel_addresses = shows_addresses(*text);
  }
  found.pmu = find_pmu(roots);
  return found;
}

}  // namespace assay::os
