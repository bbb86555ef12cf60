#include "analysis/compare/side_verdict.h"

#include <map>

#include <fmt/format.h>

namespace assay::analysis {
namespace {

// "lock", or "lock in 7 of 10 runs" where they do not agree.
std::string counted(const SideVerdict& verdict) {
  std::string kind(verdict_kind_id(*verdict.kind));
  if (verdict.agreeing == verdict.runs) return kind;
  return fmt::format("{} (in {} of {} runs)", kind, verdict.agreeing, verdict.runs);
}

}  // namespace

SideVerdict side_verdict(const Side& side) {
  std::map<std::string_view, size_t>
      votes;  // in the order of ids: ties are broken alike everywhere
  for (const RunValues& run : side.runs) {
    if (run.verdict) ++votes[verdict_kind_id(*run.verdict)];
  }
  SideVerdict out;
  out.runs = side.runs.size();
  // A verdict that was withheld says less than any that was given.
  for (bool withheld : {false, true}) {
    for (const auto& [id, count] : votes) {
      auto kind = verdict_kind_of(id);
      if ((kind == VerdictKind::withheld) != withheld || count <= out.agreeing) continue;
      out.kind = kind;
      out.agreeing = count;
    }
    if (out.kind) break;
  }
  for (const RunValues& run : side.runs) {
    if (run.verdict != out.kind || !run.verdict) continue;
    out.sentence = run.verdict_sentence;
    break;
  }
  return out;
}

std::string verdict_change(const SideVerdict& base, const SideVerdict& next) {
  if (!base.kind || !next.kind) return "";
  if (base.kind == next.kind)
    return fmt::format("The verdict is the same on both sides: {}.", counted(base));
  return fmt::format("The verdict was {}; now it is {}.", counted(base), counted(next));
}

}  // namespace assay::analysis
