#include "analysis/profile/profile.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace assay::analysis {
namespace {

// Pools listed per waiting path; a path shared by more is summed without the rest's names.
constexpr size_t kPoolsPerPath = 16;

double share_of(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

template <class T>
void keep_first(std::vector<T>& rows, size_t max) {
  if (rows.size() > max) rows.resize(max);
}

struct Sum {
  int64_t ns = 0;
  uint64_t samples = 0;
  void add(const Sum& other) {
    ns += other.ns;
    samples += other.samples;
  }
};

}  // namespace

OnCpuBuilder::OnCpuBuilder(const CallTree& tree)
    : tree_(tree), ns_(tree.stack_count()), samples_(tree.stack_count()) {}

void OnCpuBuilder::add(const model::Sample& sample) {
  size_t stack = sample.stack.value < ns_.size() ? sample.stack.value : 0;
  ns_[stack] += sample.weight_ns;
  ++samples_[stack];
  auto weight = static_cast<double>(sample.weight_ns);
  sum_squared_ += weight * weight;
}

OnCpuProfile OnCpuBuilder::finish(size_t max_functions, size_t max_paths) const {
  OnCpuProfile profile;
  profile.time_ns = std::accumulate(ns_.begin(), ns_.end(), int64_t{0});
  profile.samples = std::accumulate(samples_.begin(), samples_.end(), uint64_t{0});
  profile.effective_samples = effective_samples(static_cast<double>(profile.time_ns), sum_squared_);
  profile.functions = functions(profile, max_functions);
  profile.paths = paths(profile, max_paths);
  return profile;
}

double OnCpuBuilder::effective() const {
  return effective_samples(static_cast<double>(std::accumulate(ns_.begin(), ns_.end(), int64_t{0})),
                           sum_squared_);
}

std::vector<PathWeight> OnCpuBuilder::path_weights() const {
  std::vector<uint32_t> row_of(tree_.paths().size(), UINT32_MAX);
  std::vector<PathWeight> rows;
  for (uint32_t stack = 0; stack < ns_.size(); ++stack) {
    if (samples_[stack] == 0) continue;
    PathIndex path = tree_.path_of({stack});
    if (row_of[path] == UINT32_MAX) {
      row_of[path] = static_cast<uint32_t>(rows.size());
      rows.push_back({path, 0, 0, {stack}});
    }
    PathWeight& row = rows[row_of[path]];
    if (ns_[stack] > ns_[row.heaviest.value]) row.heaviest = {stack};
    row.ns += ns_[stack];
    row.samples += samples_[stack];
  }
  std::sort(rows.begin(), rows.end(),
            [](const PathWeight& a, const PathWeight& b) { return a.path < b.path; });
  return rows;
}

std::vector<HotFunction> OnCpuBuilder::functions(const OnCpuProfile& profile, size_t max) const {
  std::vector<Sum> on_path(tree_.paths().size());
  for (size_t stack = 1; stack < ns_.size(); ++stack) {
    if (samples_[stack] == 0) continue;
    on_path[tree_.path_of({static_cast<uint32_t>(stack)})].add({ns_[stack], samples_[stack]});
  }
  std::vector<Sum> self(tree_.functions().size()), total(tree_.functions().size());
  std::vector<PathIndex> counted(tree_.functions().size());  // the last path that counted it
  for (PathIndex path = 1; path < on_path.size(); ++path) {
    if (on_path[path].samples == 0) continue;
    self[tree_.paths()[path].function].add(on_path[path]);
    for (PathIndex at = path; at != 0; at = tree_.paths()[at].parent) {
      FunctionIndex function = tree_.paths()[at].function;
      if (counted[function] == path) continue;  // recursion
      counted[function] = path;
      total[function].add(on_path[path]);
    }
  }
  std::vector<FunctionIndex> order;
  for (FunctionIndex f = 0; f < total.size(); ++f) {
    if (total[f].samples > 0) order.push_back(f);
  }
  std::sort(order.begin(), order.end(), [&](FunctionIndex a, FunctionIndex b) {
    return std::tuple(self[b].ns, total[b].ns, a) < std::tuple(self[a].ns, total[a].ns, b);
  });
  keep_first(order, max);
  std::vector<HotFunction> rows;
  for (FunctionIndex f : order) {
    const Function& function = tree_.functions()[f];
    rows.push_back({std::string(function.name), std::string(function.module),
                    std::string(function.file), function.line, function.kind, function.named,
                    self[f].ns, total[f].ns, self[f].samples, total[f].samples,
                    wilson(share_of(self[f].ns, profile.time_ns), profile.effective_samples),
                    wilson(share_of(total[f].ns, profile.time_ns), profile.effective_samples)});
  }
  return rows;
}

std::vector<HotPath> OnCpuBuilder::paths(const OnCpuProfile& profile, size_t max) const {
  struct Row {
    Sum sum;
    uint32_t heaviest = 0;
  };
  std::vector<Row> rows(tree_.paths().size());
  for (uint32_t stack = 0; stack < ns_.size(); ++stack) {
    if (samples_[stack] == 0) continue;
    Row& row = rows[tree_.path_of({stack})];
    if (row.sum.samples == 0 || ns_[stack] > ns_[row.heaviest]) row.heaviest = stack;
    row.sum.add({ns_[stack], samples_[stack]});
  }
  std::vector<PathIndex> order;
  for (PathIndex path = 0; path < rows.size(); ++path) {
    if (rows[path].sum.samples > 0) order.push_back(path);
  }
  size_t shown = std::min(max, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(shown), order.end(),
                    [&](PathIndex a, PathIndex b) {
                      return std::tuple(rows[b].sum.ns, a) < std::tuple(rows[a].sum.ns, b);
                    });
  order.resize(shown);
  std::vector<HotPath> result;
  for (PathIndex path : order) {
    const Row& row = rows[path];
    result.push_back({tree_.texts_of({row.heaviest}), row.sum.ns, row.sum.samples,
                      wilson(share_of(row.sum.ns, profile.time_ns), profile.effective_samples)});
  }
  return result;
}

OffCpuBuilder::OffCpuBuilder(const CallTree& tree, const run::Contents& run)
    : tree_(tree), ns_(tree.stack_count()), first_slot_(tree.paths().size(), kNoSlot) {
  std::unordered_map<std::string, uint32_t> known;
  for (const model::Thread& thread : run.threads) {
    const std::string& pool = thread.pool.empty() ? thread.name : thread.pool;
    auto [it, added] = known.try_emplace(pool, static_cast<uint32_t>(pools_.size()));
    if (added) pools_.push_back(pool);
    pool_of_thread_.push_back(it->second);
  }
}

OffCpuBuilder::Slot& OffCpuBuilder::slot_of(model::StackId stack, BlockKind kind, bool idle) {
  uint32_t* link = &first_slot_[tree_.path_of(stack)];
  while (*link != kNoSlot) {
    Slot& slot = slots_[*link];
    if (slot.kind == kind && slot.idle == idle) return slot;
    link = &slot.next;
  }
  *link = static_cast<uint32_t>(slots_.size());  // before the push, which moves what it points into
  Slot& slot = slots_.emplace_back();
  slot.path = tree_.path_of(stack);
  slot.kind = kind;
  slot.idle = idle;
  slot.heaviest = stack;
  return slot;
}

void OffCpuBuilder::add_pool(Slot& slot, uint32_t pool, int64_t ns) const {
  for (auto& [known, time_ns] : slot.pools) {
    if (known != pool) continue;
    time_ns += ns;
    return;
  }
  if (slot.pools.size() < kPoolsPerPath) slot.pools.emplace_back(pool, ns);
}

void OffCpuBuilder::add(const model::Wait& wait, BlockKind kind, bool idle,
                        const PlacedWait& placed) {
  if (placed.blocked_ns <= 0 || wait.thread.value >= pool_of_thread_.size()) return;
  model::StackId stack = wait.stack.value < ns_.size() ? wait.stack : model::StackId{};
  ns_[stack.value] += placed.blocked_ns;
  Slot& slot = slot_of(stack, kind, idle);
  if (ns_[stack.value] > ns_[slot.heaviest.value]) slot.heaviest = stack;
  slot.durations.add(placed.blocked_ns);
  slot.cut += placed.cut;
  add_pool(slot, pool_of_thread_[wait.thread.value], placed.blocked_ns);
}

std::vector<WaitWeight> OffCpuBuilder::wait_weights(const std::set<std::string>& pools) const {
  std::vector<WaitWeight> rows;
  for (const Slot& slot : slots_) {
    int64_t ns = 0;
    for (auto [pool, time_ns] : slot.pools) {
      if (pools.contains(pools_[pool])) ns += time_ns;
    }
    if (ns <= 0) continue;
    rows.push_back({slot.path, slot.kind, slot.idle, ns, slot.durations.count(), slot.heaviest});
  }
  return rows;
}

OffCpuProfile OffCpuBuilder::finish(size_t max_paths) const {
  OffCpuProfile profile;
  std::vector<const Slot*> order;
  for (const Slot& slot : slots_) {
    order.push_back(&slot);
    profile.time_ns += slot.durations.sum_ns();
    profile.waits += slot.durations.count();
    if (slot.idle) profile.idle_ns += slot.durations.sum_ns();
  }
  // Waiting for work comes last: it is not a problem.
  std::stable_sort(order.begin(), order.end(), [](const Slot* a, const Slot* b) {
    return std::tuple(a->idle, b->durations.sum_ns()) < std::tuple(b->idle, a->durations.sum_ns());
  });
  keep_first(order, max_paths);
  for (const Slot* slot : order) {
    const Durations& d = slot->durations;
    WaitSummary row{slot->kind,  tree_.texts_of(slot->heaviest),
                    d.sum_ns(),  d.count(),
                    d.mean_ns(), d.quantile_ns(0.99),
                    d.max_ns(),  slot->cut,
                    {},          slot->idle};
    for (auto [pool, ns] : slot->pools) row.pools.push_back({pools_[pool], ns});
    std::stable_sort(row.pools.begin(), row.pools.end(),
                     [](const auto& a, const auto& b) { return a.time_ns > b.time_ns; });
    profile.paths.push_back(std::move(row));
  }
  return profile;
}

}  // namespace assay::analysis
