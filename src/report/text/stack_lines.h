// stack_lines: a stack as it is shown. Frames that repeat, alone or as a cycle, are shown once with
// the number of their repetitions, so that deep recursion leaves room for what it is called from.
//
// For display only: the analysis and its JSON keep every frame. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/report.h"

namespace assay::report {

struct StackLine {
  const analysis::FrameText* frame =
      nullptr;        // null: says how often the `cycle` lines above repeat
  size_t frames = 1;  // of the stack, which this line stands for
  size_t times = 1;   // of `frame`, or of the cycle
  size_t cycle = 1;   // frames in it
};

// The lines of `frames`, in their order. Frames are equal when function and file of code are: the
// line of a recursive call differs from the line where its innermost frame stands.
std::vector<StackLine> stack_lines(std::span<const analysis::FrameText> frames);

// " ×1,024" behind a frame that repeats; "" behind any other.
std::string times_text(const StackLine& line);
// "… the 3 frames above ×1,024" of a line without a frame.
std::string cycle_text(const StackLine& line);

}  // namespace assay::report
