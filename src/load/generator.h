// generate(): a whole run of load, from options to result.
//
// In: LoadOptions. Out: a LoadResult, and a Tick about every tick_ns from the calling thread while
// it runs. Workers have threads of their own. Ends by time, when all requests are done, or soon
// after `stop`. Failures: options that make no sense, a server that is not there at the start;
// afterwards everything that goes wrong is counted.
#pragma once

#include <atomic>
#include <functional>

#include "base/result.h"
#include "load/load_options.h"

namespace assay::load {

// Checks the options and prepares what is sent; asks the server for its messages where needed.
Result<Workload> prepare_workload(const LoadOptions& options);

// Whether the options make sense, without asking anybody.
Result<void> check_options(const LoadOptions& options);

Result<LoadResult> generate(const LoadOptions& options, const std::atomic<bool>& stop,
                            const std::function<void(const Tick&)>& on_tick);

}  // namespace assay::load
