#include "analysis/idle/idle_sites.h"

#include <algorithm>

namespace assay::analysis {
namespace {

constexpr double kShown = 0.01;  // of all thread time
constexpr size_t kFramesShown = 3;

}  // namespace

IdleSites::IdleSites(const CallTree& tree, const IdleJudge& judge, const run::Contents& run)
    : tree_(tree), judge_(judge), run_(run), first_row_(tree.paths().size(), kNoRow) {}

IdleSites::Row& IdleSites::row_of(PathIndex trimmed, uint32_t group, BlockKind kind,
                                  IdleReason reason) {
  uint32_t* link = &first_row_[trimmed];
  while (*link != kNoRow) {
    Row& row = rows_[*link];
    if (row.group == group && row.kind == kind && row.reason == reason) return row;
    link = &row.next;
  }
  *link = static_cast<uint32_t>(rows_.size());  // before the push, which moves what it points into
  Row& row = rows_.emplace_back();
  row.group = group;
  row.kind = kind;
  row.reason = reason;
  return row;
}

void IdleSites::add(const model::Wait& wait, BlockKind kind, IdleReason reason,
                    const PlacedWait& placed) {
  if (placed.blocked_ns <= 0) return;
  PathIndex path = tree_.path_of(wait.stack);
  Row& row = row_of(judge_.trimmed(path), judge_.group_of(wait.thread), kind, reason);
  if (row.waits == 0) {
    row.path = path;
    row.thread = wait.thread;
  }
  row.ns += placed.blocked_ns;
  ++row.waits;
}

// The program's own frames; code that has no name (made at run time) says nothing and is left out.
std::string IdleSites::site_text(PathIndex path) const {
  std::string text;
  size_t shown = 0;
  for (PathIndex at = judge_.trimmed(path); at != 0 && shown < kFramesShown;
       at = judge_.trimmed(tree_.paths()[at].parent)) {
    const Function& function = tree_.functions()[tree_.paths()[at].function];
    if (!function.named && !function.module.ends_with(".so") && function.module.starts_with("[")) {
      continue;
    }
    if (shown++ > 0) text += " ← ";
    text += function.name;
  }
  return text.empty() ? "?" : text;
}

IdleDecision IdleSites::decision_of(const Row& row, int64_t all_ns) const {
  IdleDecision decision;
  const model::Thread& thread = run_.threads[row.thread.value];
  decision.pool = thread.pool.empty() ? thread.name : thread.pool;
  if (thread.process.value < run_.processes.size()) {
    decision.pid = run_.processes[thread.process.value].pid;
    decision.role = run_.processes[thread.process.value].role;
  }
  decision.site = site_text(row.path);
  decision.kind = row.kind;
  decision.reason = row.reason;
  bool by_rule = row.reason == IdleReason::known_loop || row.reason == IdleReason::known_call;
  const IdleRule* rule = by_rule ? judge_.rule_of(row.path, row.kind) : nullptr;
  if (rule) decision.rule = rule->name;
  decision.time_ns = row.ns;
  decision.share = static_cast<double>(row.ns) / static_cast<double>(all_ns);
  decision.waits = row.waits;
  if (const PoolSite* site = judge_.site(row.group, judge_.trimmed(row.path))) {
    decision.candidates = site->waits;
    decision.ended_by_target = site->by_target;
    decision.ended_by_pool = site->by_pool;
    decision.branch_work = site->branch_work;
  }
  return decision;
}

std::vector<IdleDecision> IdleSites::finish(int64_t all_ns) const {
  std::vector<IdleDecision> decisions;
  for (const Row& row : rows_) {
    if (all_ns <= 0 || static_cast<double>(row.ns) < kShown * static_cast<double>(all_ns)) continue;
    decisions.push_back(decision_of(row, all_ns));
  }
  std::ranges::stable_sort(decisions, std::ranges::greater{}, &IdleDecision::time_ns);
  return decisions;
}

}  // namespace assay::analysis
