// Forks of a sampled program: children are sampled too, each through a channel of its own.
//
// A child does not use its parent's channel. Preloaded, it creates the file that the environment
// names with its process id; attached, it takes one of its parent's channels for children, or else
// creates one in its own memory, which Assay finds among its mappings. No slot is changed while a
// process forks: changing slots holds the dynamic linker's lock, which would stay locked in the
// child forever. Threads: the handlers run on the forking one. Failure: the child is not sampled.
#pragma once

namespace assay::inject {

// A second call does nothing.
void follow_forks();

}  // namespace assay::inject
