#include "analysis/compare/functions/changed_functions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kSmallestShare = 0.005;  // of all time: less is not tested
constexpr double kExplainedBy = 0.8;      // callees with so much of a change explain it
constexpr double kSameRatio = 0.25;       // of the caller's log ratio: "changed alike"
constexpr size_t kCallersShown = 4;
constexpr double kSamplingErrors = 2.5;  // standard errors

// One value per run of both sides, base first.
using Row = std::vector<double>;

struct Tested {
  Measure self, total;
  double self_slope = 0, total_slope = 0;  // on the slowness of the machine
  bool self_changed = false, total_changed = false;
  double share_of_base = 0, share_of_next = 0;  // inclusive
  double self_share = 0;
};

class Search {
 public:
  Search(const UnionTree& tree, const Comparison& comparison)
      : tree_(tree), comparison_(comparison), base_runs_(comparison.base.runs.size()) {
    for (const Side* side : {&comparison.base, &comparison.next}) {
      for (const RunValues& run : side->runs) runs_.push_back(&run);
    }
    measure_functions();
  }

  size_t tested() const { return tested_; }

  std::vector<Change> changes() {
    find_changed_parts();
    explain(UnionTree::kRoot);
    if (!comparison_.descriptive) mark_moves();
    std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return std::abs(a.time.next - a.time.base) > std::abs(b.time.next - b.time.base);
    });
    return std::move(changes_);
  }

 private:
  // A function that recurs on a path counts once, at its outermost call.
  void measure_functions() {
    size_t count = tree_.functions().size();
    self_.assign(count, Row(runs_.size()));
    total_.assign(count, Row(runs_.size()));
    outermost_ = find_outermost();
    told_.assign(tree_.nodes().size(), 0);
    for (size_t r = 0; r < runs_.size(); ++r) {
      const auto& self_ns = tree_.self_ns(runs_[r]->column);
      const auto& total_ns = tree_.total_ns(runs_[r]->column);
      double by = function_divisor(*runs_[r], comparison_.per);
      for (size_t node = 1; node < self_ns.size(); ++node) {
        uint32_t function = tree_.nodes()[node].function;
        self_[function][r] += self_ns[node] / by;
        if (outermost_[node] != 0) total_[function][r] += total_ns[node] / by;
      }
      all_.push_back(total_ns.empty() ? 0 : total_ns[0] / by);
    }
    test(self_, total_);
  }

  std::vector<char> find_outermost() const {
    const auto& nodes = tree_.nodes();
    std::vector<char> outermost(nodes.size(), 1);
    for (size_t node = 1; node < nodes.size(); ++node) {
      for (uint32_t up = nodes[node].parent; up != UnionTree::kRoot; up = nodes[up].parent) {
        if (nodes[up].function != nodes[node].function) continue;
        outermost[node] = 0;
        break;
      }
    }
    return outermost;
  }

  void test(const std::vector<Row>& self, const std::vector<Row>& total) {
    found_.resize(self.size());
    std::vector<double> p;
    std::vector<std::pair<size_t, bool>> asked;  // function, self?
    double all_base = side_mean(all_, true), all_next = side_mean(all_, false);
    for (size_t f = 0; f < self.size(); ++f) {
      Tested& tested = found_[f];
      tested.share_of_base = all_base > 0 ? side_mean(total[f], true) / all_base : 0;
      tested.share_of_next = all_next > 0 ? side_mean(total[f], false) / all_next : 0;
      double self_share = std::max(all_base > 0 ? side_mean(self[f], true) / all_base : 0,
                                   all_next > 0 ? side_mean(self[f], false) / all_next : 0);
      tested.self_share = self_share;
      if (std::max(tested.share_of_base, tested.share_of_next) < kSmallestShare) continue;
      ++tested_;
      measure(total[f], tested.total, tested.total_slope);
      asked.emplace_back(f, false);
      p.push_back(tested.total.p);
      if (self_share < kSmallestShare) continue;
      measure(self[f], tested.self, tested.self_slope);
      asked.emplace_back(f, true);
      p.push_back(tested.self.p);
    }
    std::vector<double> adjusted = benjamini_hochberg(p);
    for (size_t i = 0; i < asked.size(); ++i) {
      Tested& tested = found_[asked[i].first];
      Measure& measure = asked[i].second ? tested.self : tested.total;
      measure.p = adjusted[i];
      measure.outcome = comparison_.descriptive ? Outcome::descriptive
                                                : outcome_of(measure, kFunctionsLevel, false);
      bool changed =
          comparison_.descriptive ? beyond_sampling_error(measure) : is_finding(measure.outcome);
      (asked[i].second ? tested.self_changed : tested.total_changed) = changed;
    }
  }

  // With one run a side only the samples' own error is known; the runs' is not.
  bool beyond_sampling_error(const Measure& measure) const {
    const RunValues &base = *runs_.front(), &next = *runs_.back();
    auto variance = [&](const RunValues& run, double value) {
      return value * static_cast<double>(run.info.sample_period_ns) /
             function_divisor(run, comparison_.per);
    };
    double error = std::sqrt(variance(base, measure.base) + variance(next, measure.next));
    return std::abs(measure.next - measure.base) > kSamplingErrors * error &&
           std::abs(std::log(measure.ratio)) > std::log1p(kSmallestFloor);
  }

  double side_mean(const Row& row, bool base) const {
    std::span<const double> all(row);
    return mean(base ? all.first(base_runs_) : all.subspan(base_runs_));
  }

  void measure(const Row& row, Measure& measure, double& slope) const {
    std::span<const double> all(row);
    const RunValues& first = *runs_.front();
    double half_a_sample = static_cast<double>(first.info.sample_period_ns) / 2 /
                           std::max(1e-9, function_divisor(first, comparison_.per));
    FunctionMeasure made =
        make_function_measure(comparison_, all.first(base_runs_), all.subspan(base_runs_),
                              std::max(half_a_sample, 1e-12));
    measure = std::move(made.measure);
    slope = made.slope;
  }

  // A change that moved between callees does not show in their caller, so it is looked for below.
  void find_changed_parts() {
    const auto& nodes = tree_.nodes();
    changed_in_.assign(nodes.size(), 0);
    for (size_t node = nodes.size(); node-- > 1;) {
      if (takes_part(static_cast<uint32_t>(node))) changed_in_[node] = 1;
      if (changed_in_[node] != 0) changed_in_[nodes[node].parent] = 1;
    }
  }

  // Whether the change of the node's function happened here, too: by a quarter of what this place
  // would have if all places of the function had changed alike.
  bool takes_part(uint32_t node) const {
    const Tested& tested = found_[tree_.nodes()[node].function];
    auto here = [&](bool self, const Measure& of_function) {
      auto [base, next] = means(node, self);
      double whole = std::max(of_function.base, of_function.next);
      double expected = (of_function.next - of_function.base) * std::max(base, next) / whole;
      return whole > 0 && (next - base) * expected > 0 &&
             std::abs(next - base) >= 0.25 * std::abs(expected);
    };
    return (tested.self_changed && here(true, tested.self)) ||
           (tested.total_changed && here(false, tested.total));
  }

  // A node's own or inclusive time on both sides, per unit, at the usual speed of the machine.
  std::pair<double, double> means(uint32_t node, bool self) const {
    Row row(runs_.size());
    double slope = 0;
    if (node != UnionTree::kRoot) {
      const Tested& tested = found_[tree_.nodes()[node].function];
      slope = self ? tested.self_slope : tested.total_slope;
    }
    for (size_t r = 0; r < runs_.size(); ++r) {
      const auto& ns = self ? tree_.self_ns(runs_[r]->column) : tree_.total_ns(runs_[r]->column);
      double by = function_divisor(*runs_[r], comparison_.per);
      row[r] = node < ns.size() ? ns[node] / by / std::pow(runs_[r]->slowness, slope) : 0;
    }
    return {side_mean(row, true), side_mean(row, false)};
  }

  // Change of a node's inclusive time, new minus base, per unit.
  double delta(uint32_t node) const {
    auto [base, next] = means(node, false);
    return next - base;
  }

  // Goes down to what explains the change of `node`.
  void explain(uint32_t node) {
    double own = delta(node);
    std::vector<uint32_t> below;
    double explained = 0;
    for (uint32_t child : tree_.nodes()[node].children) {
      if (changed_in_[child] == 0) continue;
      below.push_back(child);
      double change = delta(child);
      if (change * own > 0) explained += change;
    }
    // A helper that changed at several places is told where most of it happened.
    std::ranges::stable_sort(below, std::greater{},
                             [&](uint32_t child) { return std::abs(delta(child)); });
    bool is_root = node == UnionTree::kRoot;
    const Tested* here = is_root ? nullptr : &found_[tree_.nodes()[node].function];
    bool changed_here = here != nullptr && (here->self_changed || here->total_changed);
    if (changed_here && changed_alike(node, *here)) return report(node, true);
    if (changed_here && !here->self_changed && is_its_own(*here, below)) return report(node, true);
    if (changed_here && here->self_changed) report(node, false);
    bool passed_on = std::abs(explained) >= kExplainedBy * std::abs(own);
    if (changed_here && !here->self_changed && !passed_on && below.empty()) report(node, true);
    for (uint32_t child : below) explain(child);
  }

  // A helper that many call (or that was inlined everywhere) changed only below this caller: as a
  // function it changed far less than the caller, which is what there is to say.
  bool is_its_own(const Tested& here, const std::vector<uint32_t>& below) const {
    if (!here.total_changed || below.empty()) return false;
    double ratio = std::abs(std::log(here.total.ratio));
    return std::ranges::all_of(below, [&](uint32_t child) {
      const Tested& tested = found_[tree_.nodes()[child].function];
      return tested.total_changed && std::abs(std::log(tested.total.ratio)) < 0.7 * ratio;
    });
  }

  // At least two callees of weight, and all of the node's time, changed by about its own ratio.
  bool changed_alike(uint32_t node, const Tested& here) const {
    if (!here.total_changed) return false;
    double ratio = std::log(here.total.ratio);
    int heavy = 0;
    for (uint32_t child : tree_.nodes()[node].children) {
      const Tested& tested = found_[tree_.nodes()[child].function];
      double share = std::max(tested.share_of_base, tested.share_of_next);
      if (share < 0.15 * std::max(here.share_of_base, here.share_of_next)) continue;
      ++heavy;
      if (std::abs(std::log(tested.total.ratio) - ratio) > kSameRatio * std::abs(ratio))
        return false;
    }
    return heavy >= 2;
  }

  void report(uint32_t node, bool with_callees) {
    const UnionTree::Node& at = tree_.nodes()[node];
    const UnionTree::Function& function = tree_.functions()[at.function];
    if (told_[node] != 0 || reported_.contains(at.function)) return;
    const Tested& tested = found_[at.function];
    Change change;
    change.function = function.name;
    change.module = function.module;
    change.with_callees = with_callees;
    change.time = with_callees ? tested.total : tested.self;
    if (is_partly_told(at.function) && !changed_elsewhere(at.function, change)) return;
    if (with_callees) tell_below(node);
    reported_[at.function] = with_callees;
    change.share_of_base = tested.share_of_base;
    change.share_of_next = tested.share_of_next;
    if (tested.share_of_base == 0) change.kind = ChangeKind::appeared;
    if (tested.share_of_next == 0) change.kind = ChangeKind::vanished;
    for (uint32_t up = at.parent; up != UnionTree::kRoot && change.callers.size() < kCallersShown;
         up = tree_.nodes()[up].parent)
      change.callers.push_back(tree_.functions()[tree_.nodes()[up].function].name);
    changes_.push_back(std::move(change));
  }

  // What a function told "including callees" calls has been told with it.
  void tell_below(uint32_t node) {
    told_[node] = 1;
    for (size_t below = node + 1; below < told_.size(); ++below)
      told_[below] |= told_[tree_.nodes()[below].parent];
  }

  bool is_partly_told(uint32_t function) const {
    for (size_t node = 1; node < told_.size(); ++node) {
      if (told_[node] != 0 && tree_.nodes()[node].function == function) return true;
    }
    return false;
  }

  // A helper of many changed as a whole: did it where nothing was told yet? `change` becomes that.
  bool changed_elsewhere(uint32_t function, Change& change) const {
    Row row(runs_.size());
    for (size_t r = 0; r < runs_.size(); ++r) {
      size_t column = runs_[r]->column;
      const auto& ns = change.with_callees ? tree_.total_ns(column) : tree_.self_ns(column);
      double by = function_divisor(*runs_[r], comparison_.per);
      for (size_t node = 1; node < ns.size(); ++node) {
        bool counts = tree_.nodes()[node].function == function && told_[node] == 0 &&
                      (!change.with_callees || outermost_[node] != 0);
        if (counts) row[r] += ns[node] / by;
      }
    }
    double slope = 0;
    measure(row, change.time, slope);
    change.time.outcome = comparison_.descriptive ? Outcome::descriptive
                                                  : outcome_of(change.time, kFunctionsLevel, false);
    return comparison_.descriptive ? beyond_sampling_error(change.time)
                                   : is_finding(change.time.outcome);
  }

  const Row& row_of(const Change& change) const {
    auto reported = std::ranges::find_if(reported_, [&](const auto& one) {
      const UnionTree::Function& function = tree_.functions()[one.first];
      return function.name == change.function && function.module == change.module;
    });
    return (reported->second ? total_ : self_)[reported->first];
  }

  // Whether both together cost what they did: only then nothing but the place has changed.
  bool sum_stayed(const Change& from, const Change& to) const {
    Row sum = row_of(from);
    const Row& other = row_of(to);
    for (size_t r = 0; r < sum.size(); ++r) sum[r] += other[r];
    Measure both;
    double slope = 0;
    measure(sum, both, slope);
    both.outcome = outcome_of(both, kFunctionsLevel, false);
    return !is_finding(both.outcome);
  }

  // Time that left one function and came to another while their caller's stayed: it only moved.
  void mark_moves() {
    for (Change& from : changes_) {
      for (Change& to : changes_) {
        double lost = from.time.base - from.time.next;
        double gained = to.time.next - to.time.base;
        if (&from == &to || lost <= 0 || gained <= 0 || !from.partner.empty() ||
            !to.partner.empty())
          continue;
        bool balanced = std::abs(lost - gained) < 0.25 * std::max(lost, gained);
        bool related = from.callers == to.callers ||
                       (!from.callers.empty() && from.callers.front() == to.function) ||
                       (!to.callers.empty() && to.callers.front() == from.function);
        if (!balanced || !related || !sum_stayed(from, to)) continue;
        from.kind = to.kind = ChangeKind::moved;
        from.partner = to.function;
        to.partner = from.function;
      }
    }
  }

  const UnionTree& tree_;
  const Comparison& comparison_;
  size_t base_runs_;
  std::vector<const RunValues*> runs_;
  Row all_;
  std::vector<Row> self_, total_;  // by function
  std::vector<char> outermost_;    // by node: not below another call of the same function
  std::vector<char> told_;         // by node: it is below a function told including callees
  std::map<uint32_t, bool> reported_;  // function, and whether including callees
  std::vector<Tested> found_;
  std::vector<char> changed_in_;  // by node: it, or something below it, changed
  std::vector<Change> changes_;
  size_t tested_ = 0;
};

}  // namespace

ChangedFunctions changed_functions(const UnionTree& tree, const Comparison& comparison,
                                   size_t most) {
  Search search(tree, comparison);
  ChangedFunctions out;
  out.changes = search.changes();
  out.tested = search.tested();
  if (out.changes.size() > most) out.changes.resize(most);
  return out;
}

}  // namespace assay::analysis
