#include "formats/export/stack_text.h"

namespace assay::formats {

std::vector<NamedFrame> named_frames(const run::Contents& contents, model::StackId stack) {
  std::vector<NamedFrame> frames;
  size_t at = stack.value < contents.stacks.size() ? stack.value : 0;
  while (at != 0) {
    const model::StackNode& node = contents.stacks[at];
    at = node.parent.value < at ? node.parent.value : 0;
    const model::Frame& frame = contents.frames[node.frame.value];
    const model::Module& module = contents.modules[frame.module.value];
    if (module.kind == model::ModuleKind::marker) continue;
    size_t before = frames.size();
    for (const model::Location& location : contents.locations[node.frame.value]) {
      if (location.function.empty()) continue;
      frames.push_back({frame.address, &module, &location, location.inlined});
    }
    if (frames.size() == before) frames.push_back({frame.address, &module, nullptr, false});
  }
  return frames;
}

}  // namespace assay::formats
