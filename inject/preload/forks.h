// Forks of a sampled program: children are sampled too, each through a channel of its own.
//
// A child leaves its parent's channel alone. Preloaded, it makes the file that the environment
// names with its process id; attached, it takes one of those that its parent's has for children, or
// else one in memory of its own, which Assay finds among its mappings. Slots are not being changed
// while a process forks: who changes them holds the dynamic linker's lock, which would stay locked
// in the child for ever. Threads: the handlers run on the forking one. Failure: the child is not
// sampled.
#pragma once

namespace assay::inject {

// Again: nothing.
void follow_forks();

}  // namespace assay::inject
