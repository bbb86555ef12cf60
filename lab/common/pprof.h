// /debug/pprof/ in a lab server, by libassay: the option and the serving.
#pragma once

#include "lab/common/options.h"

namespace lab {

// Declares --pprof PORT; 0: none.
void declare_pprof(Options& options);
// Serves at 127.0.0.1, at the given port plus `offset`. A port that is not available gives a
// message on stderr and exit status 1.
void serve_pprof(const Options& options, int offset);

}  // namespace lab
