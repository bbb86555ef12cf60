// What the text formats share: a stack's frames with addresses, names and modules, leaf first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/reader.h"

namespace assay::formats {

struct NamedFrame {
  uint64_t address = 0;  // as in model::Frame
  const model::Module* module = nullptr;
  const model::Location* location = nullptr;  // null: unnamed
  bool inlined = false;
};

// Inlined functions come before the frame that they are in. Markers are left out.
std::vector<NamedFrame> named_frames(const run::Contents& contents, model::StackId stack);

}  // namespace assay::formats
