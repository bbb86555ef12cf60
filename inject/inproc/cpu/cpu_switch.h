// CPUPROFILE and related variables, as in gperftools' libprofiler.
//
// CPUPROFILE=FILE profiles from the start to the exit; with CPUPROFILESIGNAL=N each arrival of the
// signal starts or ends a profile, in FILE.0, FILE.1, … Also CPUPROFILE_FREQUENCY, _REALTIME,
// _TIMER_SIGNAL (timers are per thread always). Signal handlers only set a request; the keeper does
// the work.
#pragma once

namespace assay::inproc {

void start_cpu_switch();
void end_cpu_switch();
void cpu_switch_in_child();
bool cpu_switch_has_signal();  // whether a signal requests profiles
void cpu_switch_in_daemon();

}  // namespace assay::inproc
