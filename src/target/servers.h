// Servers: which of several matched processes belong together.
//
// A parent and its workers are one server. So are processes that listen on one port in one network
// namespace and run the same program (SO_REUSEPORT) or were started by the same supervisor. All
// other processes are separate servers, even with the same name and the same parent.
#pragma once

#include <vector>

#include <sys/types.h>

#include "target/match.h"
#include "target/process_table.h"

namespace assay::target {

bool is_shell(const ProcessEntry& entry);

// Whether the program starts unrelated programs: a shell, init, sshd, a service manager.
bool starts_unrelated(const ProcessEntry& entry);

// Each inner vector is one server: its topmost matched processes, oldest first. `holders` says in
// which namespace each listens on the port that was asked for; it is empty when none was.
std::vector<std::vector<pid_t>> group_servers(const ProcessTable& table,
                                              const std::vector<pid_t>& matched,
                                              const std::vector<PortHolder>& holders);

}  // namespace assay::target
