#include "analysis/rules/detect.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/rules/goes_along.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kCpuShare = 0.03;
constexpr double kWaitShare = 0.05;
constexpr double kLowerBound = 2.0 / 3;  // of the threshold, for the interval's lower end
constexpr size_t kHotFunctions = 3;
constexpr size_t kLocksFound = 3;
constexpr uint32_t kLinesAround = 2;

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool holds(const MetricCondition& condition, const Vitals& vitals) {
  const Vitals::Number& value = condition.vital->of(vitals);
  if (!value) return false;
  return (!condition.above || *value > *condition.above) &&
         (!condition.below || *value < *condition.below);
}

// The sum of what matched, by the frame of the program that is responsible for it.
struct Matches {
  struct Caller {
    int64_t ns = 0;
    uint64_t count = 0;
    int64_t heaviest_ns = -1;
    model::StackId stack;
    FunctionIndex matched = 0;
  };
  int64_t ns = 0;
  uint64_t count = 0;
  std::map<FunctionIndex, Caller> callers;

  void add(FunctionIndex caller, FunctionIndex matched, int64_t time_ns, uint64_t times,
           model::StackId stack) {
    ns += time_ns;
    count += times;
    Caller& one = callers[caller];
    one.ns += time_ns;
    one.count += times;
    if (time_ns > one.heaviest_ns) {
      one.heaviest_ns = time_ns;
      one.stack = stack;
      one.matched = matched;
    }
  }
  std::vector<std::pair<FunctionIndex, Caller>> sorted() const {
    std::vector<std::pair<FunctionIndex, Caller>> all(callers.begin(), callers.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    return all;
  }
};

class Detection {
 public:
  explicit Detection(const DetectorInput& input) : in_(input) {}

  void run(const DetectorSets::Row& row, std::vector<Diagnosis>& out) {
    const DetectorRule& rule = *row.rule;
    for (const MetricCondition& condition : rule.when) {
      if (!holds(condition, in_.vitals)) return;
    }
    using enum DetectorRule::Measure;
    switch (rule.measure) {
      case cpu:
        return by_cpu(row, out);
      case wait:
        return by_wait(row, out);
      case fact:
        return by_fact(rule, out);
      case metric:
        return by_metric(rule, out);
      case hottest:
        return by_hottest(rule, out);
      case lock:
        return by_lock(rule, out);
    }
  }

 private:
  static Diagnosis finding(const DetectorRule& rule) {
    Diagnosis f;
    f.id = rule.id;
    f.title = rule.title;
    f.cause = rule.cause;
    f.because = rule.because;
    f.recommendation = rule.recommendation;
    f.explains = rule.explains;
    f.withholds = rule.withholds;
    return f;
  }

  bool matches(const DetectorSets::Row& row, PathIndex path) const {
    if (path == 0) return false;
    if (row.rule->leaf_only) {
      if (!in_.features.function_has(in_.tree.paths()[path].function, row.names)) return false;
    } else if (row.names != kNoSet && !in_.features.path_has(path, row.names)) {
      return false;
    }
    return row.under == kNoSet || in_.features.path_has(path, row.under);
  }

  // The matched function nearest to the leaf, and the program's own frame at or above it.
  std::pair<FunctionIndex, FunctionIndex> responsible(PathIndex path, SetIndex names) const {
    FunctionIndex matched = in_.tree.paths()[path].function;
    PathIndex at = path;
    for (PathIndex p = path; p != 0 && names != kNoSet; p = in_.tree.paths()[p].parent) {
      if (!in_.features.function_has(in_.tree.paths()[p].function, names)) continue;
      matched = in_.tree.paths()[p].function;
      at = p;
      break;
    }
    for (PathIndex p = at; p != 0; p = in_.tree.paths()[p].parent) {
      FunctionIndex function = in_.tree.paths()[p].function;
      if (in_.categories.application(function)) return {matched, function};
    }
    return {matched, matched};
  }

  void place(Diagnosis& f, FunctionIndex caller, model::StackId stack) const {
    const Function& function = in_.tree.functions()[caller];
    f.where = {std::string(function.name), std::string(function.file), function.line};
    for (const FrameText& frame : in_.tree.texts_of(stack)) {
      if (frame.function != function.name || frame.line == 0) continue;
      f.where.file = frame.file;
      f.where.line = frame.line;
      break;
    }
  }

  void show(Diagnosis& f, const Matches& sum, std::string_view unit) const {
    auto callers = sum.sorted();
    if (callers.empty()) return;
    place(f, callers[0].first, callers[0].second.stack);
    for (size_t i = 0; i < std::min<size_t>(3, callers.size()); ++i) {
      const auto& [caller, one] = callers[i];
      std::string_view matched = in_.tree.functions()[one.matched].name;
      std::string_view name = in_.tree.functions()[caller].name;
      Evidence evidence;
      evidence.text = fmt::format("{} {} ({}) in {}", format_count(one.count), unit,
                                  format_duration(one.ns), matched);
      if (matched != name) evidence.text += fmt::format(", for {}", name);
      evidence.frames = in_.tree.texts_of(one.stack);
      f.evidence.push_back(std::move(evidence));
    }
    if (!in_.source || f.where.file.empty() || f.where.line == 0) return;
    uint32_t first = f.where.line > kLinesAround ? f.where.line - kLinesAround : 1;
    f.evidence[0].source = in_.source(f.where.file, first, f.where.line + kLinesAround);
    f.evidence[0].source_line = first;
  }

  static bool fires(const Estimate& share, double threshold) {
    return share.share >= threshold && share.low >= kLowerBound * threshold;
  }

  void by_cpu(const DetectorSets::Row& row, std::vector<Diagnosis>& out) {
    Matches sum;
    for (const PathWeight& weight : in_.cpu) {
      if (!matches(row, weight.path)) continue;
      auto [matched, caller] = responsible(weight.path, row.names);
      sum.add(caller, matched, weight.ns, weight.samples, weight.heaviest);
    }
    Diagnosis f = finding(*row.rule);
    f.of = ShareOf::cpu_time;
    f.share = wilson(ratio(sum.ns, in_.run.on_cpu.time_ns), in_.run.on_cpu.effective_samples);
    double least = row.rule->share > 0 ? row.rule->share : kCpuShare;
    if (sum.count == 0 || !fires(f.share, least)) return;
    show(f, sum, "samples");
    std::unordered_map<FunctionIndex, int64_t> caused_ns;
    for (const auto& [caller, one] : sum.callers) caused_ns[caller] = one.ns;
    f.cpu_along = of_cpu(own_cpu_of(in_.tree, in_.cpu, caused_ns));
    out.push_back(std::move(f));
  }

  double of_cpu(int64_t ns) const { return ratio(ns, in_.run.on_cpu.time_ns); }

  void by_wait(const DetectorSets::Row& row, std::vector<Diagnosis>& out) {
    const std::vector<BlockKind>& kinds = row.rule->kinds;
    Matches sum;
    std::array<int64_t, kBlockKindCount> by_kind{};
    std::unordered_set<PathIndex> calls;
    for (const WaitWeight& weight : in_.waits) {
      if (weight.idle || weight.ns <= 0) continue;
      if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), weight.kind) == kinds.end()) {
        continue;
      }
      if (weight.path == 0 || !matches(row, weight.path)) continue;
      auto [matched, caller] = responsible(weight.path, row.names);
      sum.add(caller, matched, weight.ns, weight.count, weight.heaviest);
      by_kind[static_cast<size_t>(weight.kind)] += weight.ns;
      calls.insert(call_of(in_.tree, weight.path));
    }
    Diagnosis f = finding(*row.rule);
    f.of = ShareOf::busy_time;
    f.wait = static_cast<BlockKind>(std::ranges::max_element(by_kind) - by_kind.begin());
    f.share =
        wilson(std::min(1.0, ratio(sum.ns, in_.serving_busy_ns)), static_cast<double>(sum.count));
    double least = row.rule->share > 0 ? row.rule->share : kWaitShare;
    if (sum.count == 0 || !fires(f.share, least)) return;
    show(f, sum, "waits");
    calls.erase(0);
    f.cpu_along = of_cpu(cpu_inside(in_.tree, in_.cpu, calls));
    out.push_back(std::move(f));
  }

  void by_metric(const DetectorRule& rule, std::vector<Diagnosis>& out) {
    Diagnosis f = finding(rule);
    double value = std::clamp(*rule.when[0].vital->of(in_.vitals), 0.0, 1.0);
    f.share = {value, value, value};
    for (const MetricCondition& condition : rule.when) {
      double number = *condition.vital->of(in_.vitals);
      f.evidence.push_back({condition.vital->say(number), {}, {}, 0});
    }
    out.push_back(std::move(f));
  }

  void by_fact(const DetectorRule& rule, std::vector<Diagnosis>& out) {
    bool of_host = rule.fact->key.starts_with("host.");
    std::string key = of_host ? rule.fact->key.substr(5) : rule.fact->key;
    for (const model::Fact& fact : in_.run.facts) {
      bool scope = of_host ? fact.scope == "host" : serves(fact.scope);
      if (!scope || fact.key != key) continue;
      bool fits = rule.fact->contains.empty()
                      ? fact.value != "no" && !fact.value.empty()
                      : fact.value.find(rule.fact->contains) != fact.value.npos;
      if (!fits) continue;
      Diagnosis f = finding(rule);
      f.share = {1, 1, 1};
      f.evidence.push_back(
          {fmt::format("{}: {} is {}", fact.scope, fact.key, fact.value), {}, {}, 0});
      out.push_back(std::move(f));
      return;
    }
  }

  // A process that does at least a tenth of the work.
  bool serves(const std::string& scope) const {
    for (const ProcessTime& process : in_.run.processes) {
      if (scope != fmt::format("process {}", process.process.id.value)) continue;
      return process.time.running_ns() * 10 >= in_.run.thread_time.running_ns();
    }
    return false;
  }

  // The program's own functions, with the library code that they call and that no other rule
  // explains.
  void by_hottest(const DetectorRule& rule, std::vector<Diagnosis>& out) {
    std::map<FunctionIndex, Matches> by_function;
    for (const PathWeight& weight : in_.cpu) {
      if (weight.path == 0) continue;
      const Function& leaf = in_.tree.functions()[in_.tree.paths()[weight.path].function];
      CategoryRole role = in_.categories.role(weight.path);
      if (leaf.kind != CodeKind::user || role == CategoryRole::allocator ||
          role == CategoryRole::spin) {
        continue;
      }
      auto [matched, caller] = responsible(weight.path, kNoSet);
      if (!in_.categories.application(caller)) continue;
      by_function[caller].add(caller, matched, weight.ns, weight.samples, weight.heaviest);
    }
    std::vector<const Matches*> order;
    for (const auto& [function, sum] : by_function) order.push_back(&sum);
    std::stable_sort(order.begin(), order.end(),
                     [](const Matches* a, const Matches* b) { return a->ns > b->ns; });
    for (size_t i = 0; i < std::min(kHotFunctions, order.size()); ++i) {
      Diagnosis f = finding(rule);
      f.of = ShareOf::cpu_time;
      f.share =
          wilson(ratio(order[i]->ns, in_.run.on_cpu.time_ns), in_.run.on_cpu.effective_samples);
      if (!fires(f.share, rule.share > 0 ? rule.share : kCpuShare)) return;
      show(f, *order[i], "samples");
      f.title =
          fmt::format("{} takes {} of the CPU time", f.where.symbol, format_percent(f.share.share));
      out.push_back(std::move(f));
    }
  }

  void by_lock(const DetectorRule& rule, std::vector<Diagnosis>& out) {
    size_t found = 0;
    for (const LockSummary& lock : in_.run.locks) {
      bool shape = !rule.lock_shape || *rule.lock_shape == lock.shape;
      double least = rule.share > 0 ? rule.share : kWaitShare;
      if (!shape || lock.allocator || lock.busy_share < least || lock.shape == LockShape::brief)
        continue;
      if (++found > kLocksFound) return;
      Diagnosis f = finding(rule);
      f.of = ShareOf::busy_time;
      f.wait = BlockKind::lock;
      f.cpu_along = lock_calls_cpu();
      f.lock = static_cast<size_t>(&lock - in_.run.locks.data());
      f.title = fmt::format("{}: {}", rule.title, lock.name);
      f.share = wilson(std::min(1.0, lock.busy_share), static_cast<double>(lock.waits));
      for (const LockWaiter& waiter : lock.waiters) {
        if (f.where.symbol.empty()) f.where = {waiter.function, waiter.file, waiter.line};
        f.evidence.push_back({fmt::format("{} waits ({}) in {}", format_count(waiter.waits),
                                          format_duration(waiter.total_ns), waiter.function),
                              waiter.frames,
                              {},
                              0});
      }
      if (in_.source && !f.where.file.empty() && f.where.line > 0) {
        uint32_t first = f.where.line > kLinesAround ? f.where.line - kLinesAround : 1;
        f.evidence[0].source = in_.source(f.where.file, first, f.where.line + kLinesAround);
        f.evidence[0].source_line = first;
      }
      for (const LockHolder& holder : lock.holders) {
        f.evidence.push_back({fmt::format("released by {}{} {} times", holder.thread,
                                          holder.function.empty() ? "" : " in " + holder.function,
                                          format_count(holder.waits)),
                              {},
                              {},
                              0});
      }
      out.push_back(std::move(f));
    }
  }

  // Of CPU time: inside the calls that wait for locks.
  double lock_calls_cpu() const {
    std::unordered_set<PathIndex> calls;
    for (const WaitWeight& weight : in_.waits) {
      if (weight.kind == BlockKind::lock && !weight.idle)
        calls.insert(call_of(in_.tree, weight.path));
    }
    calls.erase(0);
    return of_cpu(cpu_inside(in_.tree, in_.cpu, calls));
  }

  const DetectorInput& in_;
};

}  // namespace

DetectorSets::DetectorSets(const RuleSet& rules, NameSets& sets) {
  for (const DetectorRule& rule : rules.detectors) {
    rows_.push_back({&rule, sets.add(rule.names), sets.add(rule.under)});
  }
}

std::vector<Diagnosis> detect(const DetectorSets& detectors, const DetectorInput& input) {
  Detection detection(input);
  std::vector<Diagnosis> findings;
  for (const DetectorSets::Row& row : detectors.rows()) detection.run(row, findings);
  return findings;
}

}  // namespace assay::analysis
