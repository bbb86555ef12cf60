// Static facts of a run: the machine, each process's limits, and how its program was built.
//
// In: values read by os/; out: model::Fact rows for the run's writer. Keys: docs/counters.md. A
// fact that is not known is left out, so that a reader can distinguish "no" from "unknown".
// Threads: pure functions except read_process_facts(), which reads /proc. Failures: facts of a
// process that has ended or that may not be read are left out.
#pragma once

#include <vector>

#include "model/ids.h"
#include "model/run_info.h"
#include "os/process/binary_facts.h"
#include "os/machine/cgroup.h"
#include "os/machine/host.h"
#include "os/process/procfs.h"

namespace assay::capture {

std::vector<model::Fact> host_facts(const os::Host& host);
std::vector<model::Fact> limit_facts(model::ProcessId id, const os::UsableCpus& usable);
std::vector<model::Fact> binary_facts(model::ProcessId id, const os::BinaryFacts& facts);
std::vector<model::Fact> image_facts(model::ProcessId id, const os::RunningImage& image);

// All of one process, start time included. Opens its exe; some milliseconds for a large program.
std::vector<model::Fact> read_process_facts(model::ProcessId id, pid_t pid, const os::Host& host,
                                            const os::ProcFs& proc, const os::CgroupFs& cgroups);

}  // namespace assay::capture
