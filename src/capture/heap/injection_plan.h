// InjectionPlan: whether the heap sampler may be brought into a running process, and where the code
// is that doing so needs.
//
// In: a pid and /proc; out: addresses in that process. Reads only; the process is not touched.
// Failures: every reason why it would not be safe or would see nothing is an Error in words, with
// what to do instead. Threads: safe everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "os/process/procfs.h"

namespace assay::capture {

// The names of the memory files that we make in a target.
inline constexpr const char* kInjectedMemory = "assay-heap";
inline constexpr const char* kChannelMemory = "assay-heap-channel";

struct InjectionPlan {
  pid_t pid = 0;
  uint64_t start_ticks = 0;   // with the pid, it names one process for ever
  uint64_t malloc_entry = 0;  // where threads come that hold no allocator lock
  uint64_t dlopen = 0;
  uint64_t dlerror = 0;       // 0: not found
  uint64_t landing = 0;       // unused bytes in a page of code, for way_back.h
  int quiet_signal = 0;       // ignored by default, and the program has no handler for it
  uint64_t library_base = 0;  // of a sampler that is mapped already; 0: none
  bool is_filtered = false;   // by seccomp: its filters must be asked before anything is called
  std::string allocator;      // path of the module that malloc is in
};

// The sampler's own functions, as offsets from where it is mapped.
struct SamplerFunctions {
  uint64_t attach = 0, detach = 0;
};
Result<SamplerFunctions> read_sampler_functions(const std::string& library);
// The same of the sampler that the process has mapped already: it may be of another Assay than the
// file. Needs root.
Result<SamplerFunctions> read_mapped_functions(const os::ProcFs& proc, pid_t pid);

// Of a call that a seccomp filter of the process stands against.
Error forbidden_by_seccomp(pid_t pid, const std::string& why);

// An Error when another process has the pid by now. To be called while a thread of the process is
// held, because then the pid cannot pass to another process.
Result<void> check_same_process(const os::ProcFs& proc, const InjectionPlan& plan);

// An Error when the process is stopped (by SIGSTOP or a debugger), so that no thread of it runs.
Result<void> check_running(const os::ProcFs& proc, pid_t pid);

// `start_ticks`: start time of the process that is meant; 0: the process that has the pid now.
Result<InjectionPlan> plan_injection(const os::ProcFs& proc, pid_t pid, uint64_t start_ticks = 0);

// Where a sampler is mapped in the process; 0: nowhere.
uint64_t find_sampler(const os::ProcFs& proc, pid_t pid);
// Where the channel is mapped that an attached sampler writes to.
std::optional<os::MapsEntry> find_channel(const os::ProcFs& proc, pid_t pid);

// Why a program that is to be launched could not load the sampler; empty: it can.
Result<void> check_launchable(const std::string& program);

}  // namespace assay::capture
