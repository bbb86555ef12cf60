// The line that a running capture shows. Pure functions.
#pragma once

#include <string>

#include "session/heap/heap_session.h"
#include "session/record/recorder.h"

namespace assay::cli {

std::string progress_text(const session::RecordProgress& state);
std::string progress_text(const session::HeapProgress& state);

}  // namespace assay::cli
