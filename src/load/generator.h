// generate(): a whole run of load, from options to result.
//
// In: LoadOptions. Out: a LoadResult, and a Tick about every tick_ns from the calling thread while
// it runs. Workers have threads of their own. Ends by time, when all requests are done, or soon
// after `stop`. Failures: invalid options, a server that cannot be reached at the start; later
// failures are counted.
#pragma once

#include <atomic>
#include <functional>

#include "base/result.h"
#include "load/load_options.h"

namespace assay::load {

// Checks the options and prepares the requests; asks the server for its message types where needed.
Result<Workload> prepare_workload(const LoadOptions& options);

// Whether the options are valid, without any network access.
Result<void> check_options(const LoadOptions& options);

Result<LoadResult> generate(const LoadOptions& options, const std::atomic<bool>& stop,
                            const std::function<void(const Tick&)>& on_tick);

}  // namespace assay::load
