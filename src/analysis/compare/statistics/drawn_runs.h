// Runs of a made-up server whose costs are known, drawn with the chance that real runs have, and
// what tests ask a comparison of them. Test support only.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/compare/compare.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {

// What a request costs: CPU ns by path, root first.
using Costs = std::map<std::vector<std::string>, double>;

inline const Costs kServer{{{"main", "serve", "parse"}, 20'000},
                           {{"main", "serve", "lookup"}, 30'000},
                           {{"main", "serve", "render", "escape"}, 25'000},
                           {{"main", "serve", "render", "join"}, 15'000},
                           {{"main", "serve"}, 10'000}};

// Draws runs of a server: each costs a few percent more or less as a whole and function by
// function, as real runs do, and is seen through Poisson-distributed samples.
class Drawn {
 public:
  // `machine`: by how much the machine's speed differs between runs.
  explicit Drawn(uint64_t seed, double machine = 0.02) : random_(seed), machine_(machine) {}

  RunValues run(const Costs& costs, UnionTree& tree, double requests = 10'000) {
    constexpr int64_t kWindow = 10 * kNsPerSecond;
    constexpr int64_t kPeriod = kNsPerMs / 4;
    FakeRun fake;
    fake.edit().info.window_end_ns = kWindow;
    fake.edit().info.sample_period_ns = kPeriod;
    fake.edit().info.backend = "perf_event";
    auto process = fake.add_process(7, "/opt/server");
    auto thread = fake.add_thread(process, 7, "server");
    std::normal_distribution<double> between(0, 0.02);
    double run_factor = std::exp(std::normal_distribution<double>(0, machine_)(random_));
    int64_t ran = 0;
    for (const auto& [path, ns] : costs) {
      double time = ns * requests * run_factor * std::exp(between(random_));
      auto samples = static_cast<int>(std::poisson_distribution<int>(time / kPeriod)(random_));
      fake.add_samples(thread, fake.stack(path), samples, kPeriod);
      ran += static_cast<int64_t>(time);
    }
    fake.add_wait(thread, fake.stack({"main", "epoll_wait"}), ran, kWindow - ran);
    fake.add_series(model::SeriesScope::load, 0, "requests",
                    {{0, 0}, {kWindow, static_cast<int64_t>(requests)}});
    auto values = read_run_values(fake, "drawn.assay", tree);
    EXPECT_TRUE(values);
    return *values;
  }

  Comparison comparison(const Costs& base, const Costs& next, int runs,
                        const CompareOptions& options = {}) {
    UnionTree tree;
    std::vector<RunValues> a, b;
    for (int i = 0; i < runs; ++i) {
      a.push_back(run(base, tree));
      b.push_back(run(next, tree));
    }
    auto out = compare(tree, std::move(a), std::move(b), options);
    EXPECT_TRUE(out);
    return *out;
  }

 private:
  std::mt19937_64 random_;
  double machine_;
};

inline Costs with(const std::vector<std::string>& path, double factor) {
  Costs costs = kServer;
  costs.at(path) *= factor;
  return costs;
}

inline const Change* change_of(const Comparison& comparison, const std::string& function) {
  for (const Change& change : comparison.changes) {
    if (change.function == function) return &change;
  }
  return nullptr;
}

inline const Measure& measure_of(const Comparison& comparison, const std::string& id) {
  for (const Measure& measure : comparison.measures) {
    if (measure.id == id) return measure;
  }
  ADD_FAILURE() << "no measure " << id;
  static const Measure kNone;
  return kNone;
}

inline std::string all_warnings(const Comparison& comparison) {
  std::string all;
  for (const std::string& warning : comparison.warnings) all += warning + "\n";
  return all;
}

}  // namespace assay::analysis
