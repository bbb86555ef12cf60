// The indices by which the nouns of a run refer to one another.
#pragma once

#include "base/ids.h"

namespace assay::model {

using ProcessId = Id<struct ProcessTag>;  // one address space image: exec makes a new one
using ThreadId = Id<struct ThreadTag>;
using ModuleId = Id<struct ModuleTag>;
using FrameId = Id<struct FrameTag>;
using StackId = Id<struct StackTag>;  // 0 is the empty stack
using SeriesId = Id<struct SeriesTag>;

}  // namespace assay::model
