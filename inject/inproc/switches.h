// The environment's switches: ASSAY_HTTP, and gperftools' CPUPROFILE* and HEAPPROFILE*.
//
// Read once when the library is loaded (never in a setuid program). What handlers are asked by
// signals is done by the keeper. Problems are one line on stderr; the host runs on.
#pragma once

namespace assay::inproc {

void start_switches();
void end_switches();       // at exit: writes what is still running
void switches_in_child();  // after fork: the child's files have its pid in their names
void switches_in_daemon();

}  // namespace assay::inproc
