#include "analysis/compare/statistics/run_speeds.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/statistics/measure.h"
#include "analysis/compare/statistics/statistics.h"

namespace assay::analysis {
namespace {

constexpr double kSmallestShare = 0.005;   // of the time: less is mostly sampling error
constexpr double kMostWeight = 0.05;       // of one path in the first guess, however heavy it is
constexpr double kTakenOut = 0.05;         // paths that differ with p below this are no yardstick
constexpr double kLeastShare = 0.1;        // of the time: a smaller yardstick is none
constexpr size_t kFewestPaths = 3;         // to begin with
constexpr std::ptrdiff_t kFewestLeft = 2;  // that did not change
constexpr int kMostRounds = 4;
constexpr size_t kFewestRuns = 3;  // on a side

using Row = std::vector<double>;  // one value per run, base first

class SpeedSearch {
 public:
  SpeedSearch(const UnionTree& tree, const Comparison& comparison)
      : base_runs_(comparison.base.runs.size()) {
    for (const Side* side : {&comparison.base, &comparison.next}) {
      for (const RunValues& run : side->runs) runs_.push_back(&run);
    }
    read_paths(tree, comparison.per);
  }

  RunSpeeds measure() {
    if (paths_.size() < kFewestPaths) return {};
    Row speed = first_guess();
    RunSpeeds out;
    out.yardstick.cost = compared(speed);
    std::vector<char> chosen;
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<char> now = unchanged(speed);
      bool enough = share(now) >= kLeastShare && std::ranges::count(now, 1) >= kFewestLeft;
      if (!enough) return out;
      if (now == chosen) break;
      chosen = std::move(now);
      speed = of_sum(chosen);
    }
    for (double log : speed) out.slowness.push_back(std::exp(log));
    out.yardstick.used = true;
    out.yardstick.share = share(chosen);
    return out;
  }

 private:
  Measure compared(const Row& logs) const {
    Row costs;
    for (double log : logs) costs.push_back(std::exp(log));
    std::span<const double> all(costs);
    return make_measure("yardstick", "the path in the middle", "", all.first(base_runs_),
                        all.subspan(base_runs_), 1e-9);
  }

  struct Path {
    Row values;
    Row logs;
    double share = 0;
  };

  void read_paths(const UnionTree& tree, Per per) {
    Row all;
    for (const RunValues* run : runs_) {
      const auto& total = tree.total_ns(run->column);
      all.push_back(total.empty() ? 0 : total[UnionTree::kRoot]);
    }
    if (std::ranges::any_of(all, [](double ns) { return ns <= 0; })) return;
    for (size_t node = 1; node < tree.nodes().size(); ++node) {
      Path path;
      for (size_t r = 0; r < runs_.size(); ++r) {
        const auto& self = tree.self_ns(runs_[r]->column);
        double ns = node < self.size() ? self[node] : 0;
        if (ns <= 0) break;
        path.share += ns / all[r] / static_cast<double>(runs_.size());
        path.values.push_back(ns / function_divisor(*runs_[r], per));
        path.logs.push_back(std::log(path.values.back()));
      }
      if (path.logs.size() < runs_.size() || path.share < kSmallestShare) continue;
      centre(path.logs);
      paths_.push_back(std::move(path));
    }
  }

  // The middle between the sides' means becomes 0, however many runs each has.
  void centre(Row& logs) const {
    std::span<const double> all(logs);
    double middle = (mean(all.first(base_runs_)) + mean(all.subspan(base_runs_))) / 2;
    for (double& log : logs) log -= middle;
  }

  // The weighted median over paths: up to half of them may have changed.
  Row first_guess() const {
    Row speed;
    double whole = 0;
    for (const Path& path : paths_) whole += std::min(path.share, kMostWeight);
    for (size_t r = 0; r < runs_.size(); ++r) {
      std::vector<std::pair<double, double>> order;
      for (const Path& path : paths_)
        order.emplace_back(path.logs[r], std::min(path.share, kMostWeight));
      std::ranges::sort(order);
      double below = 0;
      auto middle = std::ranges::find_if(order, [&](const auto& one) {
        below += one.second;
        return below >= whole / 2;
      });
      speed.push_back(middle == order.end() ? order.back().first : middle->first);
    }
    return speed;
  }

  std::vector<char> unchanged(const Row& speed) const {
    std::span<const double> speeds(speed);
    std::vector<char> chosen;
    for (const Path& path : paths_) {
      std::span<const double> all(path.logs);
      Beside beside = welch_beside(all.first(base_runs_), all.subspan(base_runs_),
                                   speeds.first(base_runs_), speeds.subspan(base_runs_));
      chosen.push_back(beside.welch.p >= kTakenOut ? 1 : 0);
    }
    return chosen;
  }

  double share(const std::vector<char>& chosen) const {
    double sum = 0;
    for (size_t i = 0; i < paths_.size(); ++i) sum += chosen[i] != 0 ? paths_[i].share : 0;
    return sum;
  }

  Row of_sum(const std::vector<char>& chosen) const {
    Row logs;
    for (size_t r = 0; r < runs_.size(); ++r) {
      double sum = 0;
      for (size_t i = 0; i < paths_.size(); ++i) sum += chosen[i] != 0 ? paths_[i].values[r] : 0;
      logs.push_back(std::log(sum));
    }
    centre(logs);
    return logs;
  }

  size_t base_runs_;
  std::vector<const RunValues*> runs_;
  std::vector<Path> paths_;
};

}  // namespace

RunSpeeds run_speeds(const UnionTree& tree, const Comparison& comparison) {
  bool enough = std::min(comparison.base.runs.size(), comparison.next.runs.size()) >= kFewestRuns;
  if (!enough || comparison.per == Per::share) return {};
  return SpeedSearch(tree, comparison).measure();
}

}  // namespace assay::analysis
