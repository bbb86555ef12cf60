#include "analysis/compare/side_verdict.h"

#include <map>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

// "lock", or "lock in 7 of 10 runs" where they do not agree.
std::string counted(const SideVerdict& verdict) {
  if (verdict.agreeing == verdict.runs) return verdict.kind;
  return fmt::format("{} (in {} of {} runs)", verdict.kind, verdict.agreeing, verdict.runs);
}

}  // namespace

SideVerdict side_verdict(const Side& side) {
  std::map<std::string, size_t> votes;
  for (const RunValues& run : side.runs) {
    if (!run.verdict.empty()) ++votes[run.verdict];
  }
  SideVerdict out;
  out.runs = side.runs.size();
  // A verdict that was withheld says less than any that was given.
  for (bool withheld : {false, true}) {
    for (const auto& [kind, count] : votes) {
      if ((kind == "withheld") != withheld || count <= out.agreeing) continue;
      out.kind = kind;
      out.agreeing = count;
    }
    if (!out.kind.empty()) break;
  }
  for (const RunValues& run : side.runs) {
    if (run.verdict != out.kind || run.verdict.empty()) continue;
    out.sentence = run.verdict_sentence;
    break;
  }
  return out;
}

std::string verdict_change(const SideVerdict& base, const SideVerdict& next) {
  if (base.kind.empty() || next.kind.empty()) return "";
  if (base.kind == next.kind)
    return fmt::format("The verdict is the same on both sides: {}.", counted(base));
  return fmt::format("The verdict was {}; now it is {}.", counted(base), counted(next));
}

}  // namespace assay::analysis
