// What `assay stat` prints of its counts: labels of intervals, and JSON. Pure.
//
// One JSON object a line: intervals with `whole` false, at last the whole with `whole` true, the
// threads where they were asked for, and how it ended.
#pragma once

#include <string>
#include <string_view>

#include "report/text/counters_text.h"
#include "session/stat/stat.h"

namespace assay::cli {

// "0.030 s": when an interval ended, fine enough to tell it from its neighbours.
std::string interval_label(double to_s, int64_t interval_ns);
std::string interval_json(double from_s, double to_s, const model::Counts& counts);
std::string whole_json(const session::StatOutcome& outcome);
report::CountedBesides besides_of(const session::StatOutcome& outcome);
// "time", "target ended", "interrupted"
std::string_view end_name(session::EndReason end);
// "worker (4711) and what it started": a thread's counts hold those of its offspring.
std::string thread_label(const session::ThreadCounts& thread);

}  // namespace assay::cli
