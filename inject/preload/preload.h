// What preload.cpp does for forked children of a preloaded program.
#pragma once

namespace assay::inject {

// A channel where the environment says that each process has its own. False: it says no such thing.
bool open_named_channel();

}  // namespace assay::inject
