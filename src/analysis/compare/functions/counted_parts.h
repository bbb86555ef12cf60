// counted_parts(): the counters of a run that a comparison looks at, and how each is shown.
//
// One row per counter: which series it is the sum of, and in what it is told. Read from a run as
// growth inside the window (what only grows) or as the highest level. Static data; pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "model/series.h"
#include "run/reader.h"
#include "run/selection/selection.h"

namespace assay::analysis {

struct CountedPart {
  const char* id;    // "minor_faults"
  const char* name;  // "page faults without disk"
  const char* unit;  // of one; a level's own unit
  const char* group;
  model::SeriesScope scope;
  const char* series;
  bool level;  // highest level rather than growth, and not divided by requests
  double scale;
};

std::span<const CountedPart> counted_parts();

// By id, of the selection's threads; parts that the run has no series of are absent, and so are
// counters of processes of which only some threads are selected. Failures: the Reader's; a
// selection that matches no thread.
Result<std::map<std::string, double>> read_counted_parts(const run::Reader& reader,
                                                         const run::Selection& selection);

}  // namespace assay::analysis
