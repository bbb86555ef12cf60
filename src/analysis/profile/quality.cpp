#include "analysis/profile/quality.h"

#include <algorithm>
#include <map>

namespace assay::analysis {
namespace {

bool no_stack(model::StackEnd end) {
  return end == model::StackEnd::not_sampled || end == model::StackEnd::lost;
}

// Whether each lost unit is a record that would have been a sample or part of a wait.
bool is_record(model::LossKind kind) {
  using enum model::LossKind;
  return kind == ring_records || kind == side_band_records || kind == dropped_samples ||
         kind == out_of_order || kind == malformed;
}

}  // namespace

StackShares stack_shares(const CallTree& tree, const StackWeights& weights) {
  int64_t complete = 0, frame_pointers = 0, truncated = 0, none = 0, unresolved = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    model::StackEnd end = tree.end_of({i});
    const Function* leaf = tree.leaf_of({i});
    if (!leaf || no_stack(end)) {
      none += weights[i];
    } else if (end == model::StackEnd::complete) {
      complete += weights[i];
    } else if (end == model::StackEnd::frame_pointers) {
      frame_pointers += weights[i];
    } else {
      truncated += weights[i];
    }
    if (leaf && !leaf->named) unresolved += weights[i];
  }
  StackShares shares;
  shares.time_ns = complete + frame_pointers + truncated + none;
  if (shares.time_ns <= 0) return shares;
  auto whole = static_cast<double>(shares.time_ns);
  shares.complete = static_cast<double>(complete) / whole;
  shares.by_frame_pointers = static_cast<double>(frame_pointers) / whole;
  shares.truncated = static_cast<double>(truncated) / whole;
  shares.none = static_cast<double>(none) / whole;
  shares.unresolved = static_cast<double>(unresolved) / whole;
  return shares;
}

std::vector<UnresolvedModule> unresolved_modules(const CallTree& tree, const StackWeights& weights,
                                                 size_t max) {
  std::map<std::string, int64_t> by_module;
  int64_t whole = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    whole += weights[i];
    const Function* leaf = tree.leaf_of({i});
    if (weights[i] > 0 && leaf && !leaf->named) by_module[std::string(leaf->module)] += weights[i];
  }
  std::vector<UnresolvedModule> modules;
  for (const auto& [module, ns] : by_module) {
    modules.push_back({module, static_cast<double>(ns) / static_cast<double>(whole)});
  }
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  if (modules.size() > max) modules.resize(max);
  return modules;
}

void add_run_facts(const run::Contents& run, Quality& quality) {
  for (const model::Loss& loss : run.losses) {
    auto kind = static_cast<size_t>(loss.kind);
    if (kind >= quality.lost.size()) continue;
    quality.lost[kind] += loss.count;
    if (is_record(loss.kind)) quality.lost_records += loss.count;
  }
  if (run.info.sample_period_ns > 0) {
    quality.hz_asked = 1e9 / static_cast<double>(run.info.sample_period_ns);
  }
  quality.finished = run.info.finished;
  quality.end_reason = run.info.end_reason;
  quality.ran_to_its_end =
      run.info.end_reason == "target exited" && run.info.target.starts_with("-- ");
  quality.notes = run.notes;
}

}  // namespace assay::analysis
