// libassay's beginning and end in a process: loading, forking, becoming a daemon, exiting.
#pragma once

namespace assay::inproc {

// From every entry of the C interface: registers the fork handlers once, also in libassay.a.
void begin_lifecycle();
// False in a setuid program, and before the library was initialised: hooks record nothing.
bool is_active();
// From the setsid hook: a forked child that continues as the server takes over the environment's
// switches.
void became_daemon();

}  // namespace assay::inproc
