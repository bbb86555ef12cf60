#include "analysis/compare/functions/node_changes.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kSmallestShare = 0.002;  // of all time: less is not tested and counts as noise
constexpr double kSamplingErrors = 2.5;

double at(const std::vector<double>& values, size_t node) {
  return node < values.size() ? values[node] : 0;
}

class NodeTests {
 public:
  NodeTests(const UnionTree& tree, const Comparison& comparison)
      : tree_(tree), comparison_(comparison), changes_(tree.nodes().size()) {}

  std::vector<NodeChange> run() {
    sum(comparison_.base, &NodeChange::base_self, &NodeChange::base);
    sum(comparison_.next, &NodeChange::next_self, &NodeChange::next);
    double smallest = kSmallestShare * std::max(changes_[0].base, changes_[0].next);
    std::vector<size_t> nodes;
    for (size_t node = 0; node < changes_.size(); ++node) {
      if (std::max(changes_[node].base, changes_[node].next) >= smallest) nodes.push_back(node);
    }
    comparison_.descriptive ? judge_by_samples(nodes) : test(nodes);
    return std::move(changes_);
  }

 private:
  void sum(const Side& side, double NodeChange::*self, double NodeChange::*total) {
    for (const RunValues& run : side.runs) {
      double by = std::max(1e-9, function_divisor(run, comparison_.per)) *
                  static_cast<double>(side.runs.size());
      for (size_t node = 0; node < changes_.size(); ++node) {
        changes_[node].*self += at(tree_.self_ns(run.column), node) / by;
        changes_[node].*total += at(tree_.total_ns(run.column), node) / by;
      }
    }
  }

  std::vector<double> values(const Side& side, size_t node) const {
    std::vector<double> out;
    for (const RunValues& run : side.runs)
      out.push_back(at(tree_.total_ns(run.column), node) /
                    std::max(1e-9, function_divisor(run, comparison_.per)));
    return out;
  }

  double half_a_sample(const RunValues& run) const {
    return static_cast<double>(run.info.sample_period_ns) / 2 /
           std::max(1e-9, function_divisor(run, comparison_.per));
  }

  void test(const std::vector<size_t>& nodes) {
    std::vector<Measure> measures;
    std::vector<double> p;
    double least = std::max(1e-12, half_a_sample(comparison_.base.runs.front()));
    for (size_t node : nodes) {
      measures.push_back(make_function_measure(comparison_, values(comparison_.base, node),
                                               values(comparison_.next, node), least)
                             .measure);
      p.push_back(measures.back().p);
    }
    std::vector<double> adjusted = benjamini_hochberg(p);
    for (size_t i = 0; i < nodes.size(); ++i) {
      measures[i].p = adjusted[i];
      changes_[nodes[i]].shown = is_finding(outcome_of(measures[i], kFunctionsLevel, false));
    }
  }

  void judge_by_samples(const std::vector<size_t>& nodes) {
    double base_unit = 2 * half_a_sample(comparison_.base.runs.front());
    double next_unit = 2 * half_a_sample(comparison_.next.runs.front());
    for (size_t node : nodes) {
      NodeChange& change = changes_[node];
      double error = std::sqrt(change.base * base_unit + change.next * next_unit);
      double difference = std::abs(change.next - change.base);
      change.shown = difference > kSamplingErrors * error &&
                     difference > kSmallestFloor * std::max(change.base, change.next);
    }
  }

  const UnionTree& tree_;
  const Comparison& comparison_;
  std::vector<NodeChange> changes_;
};

}  // namespace

std::vector<NodeChange> node_changes(const UnionTree& tree, const Comparison& comparison) {
  return NodeTests(tree, comparison).run();
}

}  // namespace assay::analysis
