// Names for imported frames that came with addresses only, from the files of this machine.
//
// A module is opened by its path and must have the build id that the import says, if it says one;
// kernel addresses are named only when the import shows that this kernel lay at the same place.
// What finds no name keeps none, and a note says in which modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/run_builder.h"

namespace assay::session {

// Where the imported kernel had one of its symbols ("_text").
struct KernelPlace {
  std::string symbol;
  uint64_t address = 0;
};

void name_imported_frames(formats::RunBuilder& builder, const std::string& cache_dir,
                          const std::optional<KernelPlace>& kernel);

}  // namespace assay::session
