// Texts for people about targets and processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "os/process/procfs.h"
#include "target/process_table.h"
#include "target/target.h"

namespace assay::target {

// Text from a target, safe for a terminal: control characters become \xNN.
std::string printable(std::string_view text);

// An argument for a shell: quoted when it contains more than plain characters.
std::string shell_word(const std::string& text);

// "--port 8000", "-- ./server --fast": the target as it was asked for.
std::string describe(const TargetSpec& spec);

// One line per process: pid, program, user, age, the ports it listens on.
std::string candidate_lines(const ProcessTable& table, const os::ProcFs& proc,
                            const std::vector<pid_t>& pids);

}  // namespace assay::target
