// HEAPPROFILE and related variables, as in gperftools' tcmalloc.
//
// HEAPPROFILE=PREFIX writes PREFIX.0001.heap, PREFIX.0002.heap, …: every
// HEAP_PROFILE_ALLOCATION_INTERVAL bytes allocated (1 GB), HEAP_PROFILE_DEALLOCATION_INTERVAL bytes
// freed (off), each time the live heap has grown by HEAP_PROFILE_INUSE_INTERVAL (100 MB) beyond its
// peak, every HEAP_PROFILE_TIME_INTERVAL seconds (off), on HEAPPROFILESIGNAL, and at the exit. The
// numbers are the sampler's estimates, checked five times a second. Where HEAPPROFILE is set and
// CPUPROFILE is not, CPUPROFILESIGNAL requests a heap profile, too.
#pragma once

namespace assay::inproc {

void start_heap_switch();
void end_heap_switch();
void heap_switch_in_child();
bool heap_switch_has_signal();  // whether a signal requests profiles
void heap_switch_in_daemon();

}  // namespace assay::inproc
