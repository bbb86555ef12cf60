// HotSource: keeps the source text around the lines where the time goes, so that a run can be read
// on a machine without the sources.
//
// In: the stack of every sample and wait with its time. Out, once at the end: source lines in the
// sink. Of the functions that ran, the heaviest lines get a few lines around them; callers, and
// where threads waited, get fewer. Threads: add_*() by one thread, write() after it has ended.
// Failures: a file that cannot be found is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "evidence/sink.h"
#include "model/stack.h"
#include "symbol/source_text.h"
#include "symbol/symbolizer.h"

namespace assay::evidence {

class HotSource {
 public:
  void add_running(model::StackId stack, int64_t ns) { add(running_, stack, ns); }
  void add_waiting(model::StackId stack, int64_t ns) { add(waiting_, stack, ns); }

  void write(const model::FrameTable& frames, const model::StackTable& stacks,
             symbol::Symbolizer& symbolizer, symbol::SourceText& text, Sink& sink) const;

 private:
  static void add(std::vector<int64_t>& weights, model::StackId stack, int64_t ns) {
    if (stack.value >= weights.size()) weights.resize(stack.value + 1);
    weights[stack.value] += ns;
  }

  std::vector<int64_t> running_;  // ns by stack
  std::vector<int64_t> waiting_;
};

}  // namespace assay::evidence
