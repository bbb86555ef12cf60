#include "report/text/stack_lines.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "report/text/words.h"

namespace assay::report {
namespace {

constexpr size_t kLongestCycle = 32;
// Fewer are shown as they are: two calls of one function are often two different things.
constexpr size_t kFewestTimes = 3;

struct Cycle {
  size_t length = 1, times = 1;
  size_t saved() const { return (times - 1) * length; }
};

// Equal frames have equal numbers.
std::vector<uint32_t> numbered(std::span<const analysis::FrameText> frames) {
  std::map<std::tuple<std::string_view, std::string_view, bool>, uint32_t> numbers;
  std::vector<uint32_t> out;
  for (const analysis::FrameText& f : frames) {
    auto next = static_cast<uint32_t>(numbers.size());
    out.push_back(numbers.try_emplace({f.function, f.module, f.inlined}, next).first->second);
  }
  return out;
}

// The cycle at the beginning of `frames` that hides most of them; the shortest of equals.
Cycle first_cycle(std::span<const uint32_t> frames) {
  Cycle best;
  for (size_t length = 1; length <= kLongestCycle && length * kFewestTimes <= frames.size();
       ++length) {
    // As far as each frame equals the one a cycle before it.
    size_t equal = length;
    while (equal < frames.size() && frames[equal] == frames[equal - length]) ++equal;
    Cycle cycle{length, equal / length};
    if (cycle.times >= kFewestTimes && cycle.saved() > best.saved()) best = cycle;
  }
  return best;
}

}  // namespace

std::vector<StackLine> stack_lines(std::span<const analysis::FrameText> frames) {
  std::vector<uint32_t> numbers = numbered(frames);
  std::vector<StackLine> lines;
  for (size_t at = 0; at < frames.size();) {
    Cycle cycle = first_cycle(std::span(numbers).subspan(at));
    if (cycle.length == 1) {
      lines.push_back({&frames[at], cycle.times, cycle.times, 1});
    } else {
      for (size_t i = 0; i < cycle.length; ++i) lines.push_back({&frames[at + i], 1, 1, 1});
      lines.push_back({nullptr, cycle.saved(), cycle.times, cycle.length});
    }
    at += cycle.length * cycle.times;
  }
  return lines;
}

std::string times_text(const StackLine& line) {
  return line.frame != nullptr && line.times > 1 ? fmt::format(" ×{}", grouped(line.times)) : "";
}

std::string cycle_text(const StackLine& line) {
  return fmt::format("… the {} frames above ×{}", line.cycle, grouped(line.times));
}

}  // namespace assay::report
