#include "analysis/rules/rule_matches.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/profile/categories.h"
#include "analysis/rules/detect.h"
#include "analysis/time/idle_judge.h"

namespace assay::analysis {
namespace {

constexpr size_t kExamples = 3;
constexpr size_t kUnclassifiedListed = 40;

struct Row {
  std::string rule, name;
  SetIndex set = kNoSet;
  std::optional<CategoryIndex> category;
  size_t breakdown = 0;
};

// Time that ends in each path, of samples and of waits.
struct PathTimes {
  std::vector<int64_t> cpu, waits;
  int64_t cpu_ns = 0, wait_ns = 0;
};

Result<PathTimes> read_times(const run::Reader& reader, const CallTree& tree) {
  PathTimes times;
  times.cpu.resize(tree.paths().size());
  times.waits.resize(tree.paths().size());
  const model::RunInfo& info = reader.contents().info;
  run::TimeRange window{info.window_begin_ns, info.window_end_ns};
  auto status = reader.for_each_sample(window, [&](const model::Sample& sample) {
    times.cpu[tree.path_of(sample.stack)] += sample.weight_ns;
    times.cpu_ns += sample.weight_ns;
  });
  if (!status) return std::unexpected(status.error());
  status = reader.for_each_wait(window, [&](const model::Wait& wait) {
    int64_t ns = std::max<int64_t>(0, wait.duration_ns);
    times.waits[tree.path_of(wait.stack)] += ns;
    times.wait_ns += ns;
  });
  if (!status) return std::unexpected(status.error());
  return times;
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

RuleMatch match(const Row& row, const CallTree& tree, const StackFeatures& features,
                const Categories& categories, const PathTimes& times) {
  RuleMatch found{row.rule, row.name, 0, 0, 0, {}};
  for (FunctionIndex f = 0; f < tree.functions().size(); ++f) {
    if (!features.function_has(f, row.set)) continue;
    ++found.functions;
    if (found.examples.size() < kExamples) found.examples.emplace_back(tree.functions()[f].name);
  }
  int64_t cpu = 0, waits = 0;
  for (PathIndex path = 1; path < tree.paths().size(); ++path) {
    if (times.cpu[path] == 0 && times.waits[path] == 0) continue;
    bool on_stack = features.path_has(path, row.set);
    bool owned = row.category && categories.owner(row.breakdown, path) == *row.category;
    if (row.category ? owned : on_stack) cpu += times.cpu[path];
    if (on_stack) waits += times.waits[path];
  }
  found.cpu_share = ratio(cpu, times.cpu_ns);
  found.wait_share = ratio(waits, times.wait_ns);
  return found;
}

void add_unclassified(const CallTree& tree, const Categories& categories, const PathTimes& times,
                      RuleMatches& result) {
  std::vector<int64_t> self(tree.functions().size());
  for (PathIndex path = 1; path < tree.paths().size(); ++path) {
    self[tree.paths()[path].function] += times.cpu[path];
  }
  int64_t unknown = 0;
  for (FunctionIndex f = 0; f < self.size(); ++f) {
    const Function& function = tree.functions()[f];
    // Kernel functions belong to the part that called them; the program's own code is its own.
    bool counts = self[f] > 0 && categories.unclassified(f) && !categories.application(f) &&
                  function.kind == CodeKind::user;
    if (!counts) continue;
    unknown += self[f];
    result.unclassified.push_back(
        {std::string(function.name), std::string(function.module), ratio(self[f], times.cpu_ns)});
  }
  result.unclassified_share = ratio(unknown, times.cpu_ns);
  std::stable_sort(result.unclassified.begin(), result.unclassified.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  if (result.unclassified.size() > kUnclassifiedListed) {
    result.unclassified.resize(kUnclassifiedListed);
  }
}

}  // namespace

Result<RuleMatches> match_rules(const run::Reader& reader, const RuleSet& rules) {
  CallTree tree(reader.contents());
  NameSets sets;
  Categories categories(rules, sets);
  std::vector<Row> rows;
  std::vector<std::string> breakdowns{std::string(kSubsystem)};
  for (const CategoryRule& rule : rules.categories) {
    auto at = std::find(breakdowns.begin(), breakdowns.end(), rule.breakdown);
    if (at == breakdowns.end()) at = breakdowns.insert(at, rule.breakdown);
    CategoryIndex index = 0;
    while (categories.all()[index].breakdown != rule.breakdown ||
           categories.all()[index].id != rule.id) {
      ++index;
    }
    rows.push_back({fmt::format("category {}/{}", rule.breakdown, rule.id), rule.name,
                    sets.add(rule.names), index, static_cast<size_t>(at - breakdowns.begin())});
  }
  for (const IdleRule& rule : rules.idle) {
    rows.push_back({fmt::format("{} {}", rule.busy ? "busy" : "idle", rule.id),
                    rule.name,
                    sets.add(rule.names),
                    {},
                    0});
  }
  for (const DetectorRule& rule : rules.detectors) {
    if (rule.names.empty()) continue;
    rows.push_back({fmt::format("detector {}", rule.id), rule.title, sets.add(rule.names), {}, 0});
  }
  StackFeatures features(tree, sets);
  categories.place(tree, features, reader.contents());
  auto times = read_times(reader, tree);
  if (!times) return std::unexpected(times.error());
  RuleMatches result;
  for (const Row& row : rows) {
    RuleMatch found = match(row, tree, features, categories, *times);
    if (found.functions == 0) {
      result.silent.push_back(row.rule);
    } else {
      result.matched.push_back(std::move(found));
    }
  }
  add_unclassified(tree, categories, *times, result);
  return result;
}

}  // namespace assay::analysis
