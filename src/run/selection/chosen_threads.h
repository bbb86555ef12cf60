// What a Selection means in one run: its threads and its time.
//
// In: a Selection and the run's contents. Out: a mark for each thread; a span of the run's clock.
// Pure. Failures: a selection that matches no thread, an expression that is none, a number that the
// run does not have.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/time/time_span.h"
#include "run/reader.h"
#include "run/selection/selection.h"

namespace assay::run {

// By thread. With threads by number alone it may be none.
Result<std::vector<bool>> choose_threads(const Selection& selection, const Contents& run);

// Cut to the window; may be empty.
model::TimeSpan chosen_time(const Selection& selection, const Contents& run);

// By process: "server", or "server [worker 0]" where several processes are of that name; unique in
// the run.
std::vector<std::string> process_labels(const Contents& run);

}  // namespace assay::run
