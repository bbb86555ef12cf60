// Forks of a sampled program: children are sampled too, each through a channel of its own.
//
// A child leaves its parent's channel alone. Preloaded, it makes the file that the environment
// names with its process id; attached, a channel in memory of its own, which Assay finds among its
// mappings. Slots are not being changed while a process forks: who changes them holds the dynamic
// linker's lock, which would stay locked in the child for ever. Threads: the handlers run on the
// forking one. Failure: the child is not sampled.
#pragma once

namespace assay::inject {

// Again: nothing.
void follow_forks();

// Of attach.cpp: keep everybody from changing slots / let them again / forget who did, in a child.
void hold_changes();
void release_changes();
void forget_changes();
bool has_hooked_slots();

// Of preload.cpp: a channel where the environment says that each process has its own. False: it
// says no such thing.
bool open_named_channel();

}  // namespace assay::inject
