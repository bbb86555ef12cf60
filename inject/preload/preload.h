// What preload.cpp does for forked children of a preloaded program.
#pragma once

namespace assay::inject {

// Opens a channel where the environment gives each process its own. False: it does not.
bool open_named_channel();

}  // namespace assay::inject
