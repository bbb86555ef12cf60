// The environment's switches: ASSAY_HTTP, and gperftools' CPUPROFILE* and HEAPPROFILE*.
//
// Read once when the library is loaded (never in a setuid program). The keeper handles requests by
// signal. Problems give one line on stderr; the host continues.
#pragma once

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

void start_switches();
void end_switches();       // at exit: writes the profiles that are still running
void switches_in_child();  // after fork: the child's files have its pid in their names
void switches_in_daemon();

// A process that this one started asks for the address of ASSAY_HTTP (port_handover.h).
void answer_handover_switch(HttpExchange& exchange);

}  // namespace assay::inproc
