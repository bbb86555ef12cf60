// Where unwind tables and symbols are kept between runs: $XDG_CACHE_HOME/assay or ~/.cache/assay.
#pragma once

#include <string>

namespace assay::session {

// Empty when there is no home to keep it in.
std::string default_cache_dir();

}  // namespace assay::session
