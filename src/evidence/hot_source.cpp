#include "evidence/hot_source.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace assay::evidence {
namespace {

constexpr size_t kHotFrames = 120;  // of each ranking
constexpr uint32_t kAroundHot = 4;  // lines before and after
constexpr uint32_t kAroundCaller = 1;

using FrameWeights = std::vector<int64_t>;

// Time of each frame with all that it called, from the time of whole stacks. Parents have lower ids
// than their children, so one pass from the back hands everything down to the callers.
FrameWeights inclusive_weights(const std::vector<int64_t>& by_stack,
                               const model::StackTable& stacks, size_t frame_count) {
  FrameWeights of_frames(frame_count);
  std::vector<int64_t> below = by_stack;
  for (size_t i = std::min(below.size(), stacks.all().size()); i-- > 1;) {
    const model::StackNode& node = stacks.all()[i];
    below[node.parent.value] += below[i];
    of_frames[node.frame.value] += below[i];
  }
  return of_frames;
}

FrameWeights own_weights(const std::vector<int64_t>& by_stack, const model::StackTable& stacks,
                         size_t frame_count) {
  FrameWeights of_frames(frame_count);
  for (size_t i = 1; i < std::min(by_stack.size(), stacks.all().size()); ++i) {
    of_frames[stacks.all()[i].frame.value] += by_stack[i];
  }
  return of_frames;
}

std::vector<model::FrameId> heaviest(const FrameWeights& weights) {
  std::vector<model::FrameId> ids;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) ids.push_back({static_cast<uint32_t>(i)});
  }
  size_t kept = std::min(ids.size(), kHotFrames);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(kept), ids.end(),
                    [&](model::FrameId a, model::FrameId b) {
                      return std::pair(-weights[a.value], a.value) <
                             std::pair(-weights[b.value], b.value);
                    });
  ids.resize(kept);
  return ids;
}

}  // namespace

void HotSource::write(const model::FrameTable& frames, const model::StackTable& stacks,
                      symbol::Symbolizer& symbolizer, symbol::SourceText& text, Sink& sink) const {
  std::set<std::pair<std::string, uint32_t>> written;
  auto keep = [&](const FrameWeights& weights, uint32_t around) {
    for (model::FrameId id : heaviest(weights)) {
      const model::Frame& frame = frames[id];
      for (const model::Location& at : symbolizer.resolve(frame.module, frame.address)) {
        if (at.file.empty() || at.line == 0) continue;
        uint32_t first = at.line > around ? at.line - around : 1;
        uint32_t number = first;
        for (const std::string& line : text.source_lines(at.file, first, at.line + around)) {
          if (written.insert({at.file, number}).second) sink.put_source_line(at.file, number, line);
          ++number;
        }
      }
    }
  };
  size_t count = frames.all().size();
  keep(own_weights(running_, stacks, count), kAroundHot);
  keep(inclusive_weights(running_, stacks, count), kAroundCaller);
  keep(inclusive_weights(waiting_, stacks, count), kAroundCaller);
}

}  // namespace assay::evidence
