#include "os/sandbox/capture_rights.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_group.h"
#include "os/machine/kernel_version.h"

namespace assay::os {
namespace {

constexpr int kPerfmon = 38, kBpf = 39, kCheckpointRestore = 40, kLastCapability = 63;

constexpr std::array kKept{
    KeptRight{kPerfmon, "CAP_PERFMON",
              "events are opened anew: for another size of stacks, on a CPU that comes back"},
    KeptRight{kBpf, "CAP_BPF", "the BPF programs get tables of code that is loaded later"},
    KeptRight{CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
              "maps, memory and programs of processes that come later; the heap sampler is taken out"},
    KeptRight{kCheckpointRestore, "CAP_CHECKPOINT_RESTORE",
              "mapped files that are deleted are opened through /proc/PID/map_files"},
    KeptRight{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
              "what a descriptor of another user's process is, in /proc/PID/fd"},
    KeptRight{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE",
              "the run is finished in a directory that belongs to another user"},
    KeptRight{CAP_SETUID, "CAP_SETUID", "files of a target are opened with the target's rights"},
    KeptRight{CAP_SETGID, "CAP_SETGID", "the same, for its groups"},
    KeptRight{CAP_KILL, "CAP_KILL", "a launched command that has changed its user is stopped"},
    KeptRight{CAP_SYS_NICE, "CAP_SYS_NICE", "the threads that empty the rings come first"},
    KeptRight{CAP_SYSLOG, "CAP_SYSLOG", "kernel addresses, which are read with the first name"},
};

const std::array kFeatures{
    FeatureRights{"record your own processes, perf events",
                  {},
                  "needs kernel.perf_event_paranoid 2 or less; kernel code with 1 or less"},
    FeatureRights{"record whole CPUs, perf events",
                  {kPerfmon},
                  "threads are followed one by one, wakers are not known"},
    FeatureRights{"switches and wakers by tracepoints",
                  {kPerfmon, CAP_DAC_READ_SEARCH},
                  "waits come from context-switch events, wakers are not known"},
    FeatureRights{"record with BPF", {kBpf, kPerfmon}, "perf events are used"},
    FeatureRights{"other users' processes",
                  {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH},
                  "only your own processes can be named and unwound"},
    FeatureRights{"files with the rights of other users",
                  {CAP_SETUID, CAP_SETGID},
                  "files of a target that you may not read yourself stay without names"},
    FeatureRights{"heap of a running process",
                  {CAP_SYS_PTRACE},
                  "your own processes only, and kernel.yama.ptrace_scope must be 0"},
    FeatureRights{"kernel function names", {CAP_SYSLOG}, "needs kernel.kptr_restrict 0"},
    FeatureRights{"large rings", {CAP_IPC_LOCK}, "kernel.perf_event_mlock_kb limits them"},
};

bool has_own_network(pid_t pid) {
  std::error_code unknown;
  auto theirs = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/net", pid), unknown);
  return !unknown && theirs != std::filesystem::read_symlink("/proc/self/ns/net", unknown);
}

// When this setting is 3, as it is by default on Debian, its kernels ask for CAP_SYS_ADMIN before
// they open an event. Other kernels have no such level.
bool wants_more_for_events() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  return file >> level && level > 2;
}

struct Sets {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
};

}  // namespace

std::span<const KeptRight> kept_rights() {
  return kKept;
}

std::span<const FeatureRights> feature_rights() {
  return kFeatures;
}

uint64_t kept_rights_mask(const std::vector<pid_t>& pids) {
  uint64_t mask = 0;
  for (const KeptRight& right : kKept) mask |= uint64_t{1} << right.capability;
  bool is_old = read_kernel_version("/proc") < KernelVersion{5, 9, 0};
  if (is_old || wants_more_for_events() || std::ranges::any_of(pids, has_own_network))
    mask |= uint64_t{1} << CAP_SYS_ADMIN;
  if (has_file_group()) mask |= uint64_t{1} << CAP_CHOWN;  // the run is given to its group
  return mask;
}

Result<void> give_up_rights(const std::vector<pid_t>& pids) {
  uint64_t kept = kept_rights_mask(pids);
  // What a program that is run later could gain; needs a right that is dropped below.
  for (int capability = 0; capability <= kLastCapability; ++capability)
    if ((kept >> capability & 1) == 0) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("new privileges cannot be ruled out");
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  Sets sets;
  if (::syscall(SYS_capget, &sets.header, sets.data) != 0)
    return fail_errno("capabilities cannot be read");
  for (int half : {0, 1}) {
    auto mask = static_cast<uint32_t>(kept >> (32 * half));
    sets.data[half].permitted &= mask;
    sets.data[half].effective &= mask;
    sets.data[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &sets.header, sets.data) != 0)
    return fail_errno("capabilities cannot be dropped");
  return {};
}

std::string capability_text(int capability) {
  if (capability == CAP_IPC_LOCK) return "CAP_IPC_LOCK";
  for (const KeptRight& right : kKept)
    if (right.capability == capability) return right.name;
  return fmt::format("capability {}", capability);
}

}  // namespace assay::os
