// What the seccomp filters of a target say to the system calls that the heap sampler needs.
//
// Containers run under filters as a rule, most of which allow what every program does; others end a
// process at the first call that they do not know. So they are read and asked before anything is
// called. In: a stopped tracee, or the filters' own programs (classic BPF over seccomp_data); out:
// the first call that is not allowed. Pure but for read_filters(). Threads: safe everywhere;
// reading is the tracer's. Failures: filters that cannot be read are an Error, to be taken for a
// refusal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include "base/result.h"

namespace assay::capture {

using SeccompProgram = std::vector<sock_filter>;

// SECCOMP_RET_…, with its data; nullopt: the program leaves the rules of such programs.
std::optional<uint32_t> run_filter(std::span<const sock_filter> program, const seccomp_data& call);

// The name of the first system call that any of the filters does not simply allow; "": none.
std::string first_forbidden(const std::vector<SeccompProgram>& filters);

// All filters that a stopped tracee runs under. Needs CAP_SYS_ADMIN.
Result<std::vector<SeccompProgram>> read_filters(pid_t tid);

}  // namespace assay::capture
