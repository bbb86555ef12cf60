#include "analysis/analyse.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/heap/heap_findings.h"
#include "analysis/rules/detect.h"
#include "analysis/time/handoffs.h"
#include "analysis/time/idle_judge.h"
#include "analysis/time/wait_classifier.h"
#include "analysis/time/wait_shapes.h"
#include "analysis/verdict/gain.h"
#include "analysis/verdict/verdict.h"
#include "analysis/verdict/vitals.h"

namespace assay::analysis {
namespace {

constexpr size_t kUnresolvedModulesListed = 5;

template <class T>
bool in(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<bool> select_threads(const run::Contents& run, const Options& options) {
  std::vector<bool> selected(run.threads.size());
  for (size_t i = 0; i < run.threads.size(); ++i) {
    const model::Thread& thread = run.threads[i];
    pid_t pid =
        thread.process.value < run.processes.size() ? run.processes[thread.process.value].pid : 0;
    selected[i] = in(options.pids, pid) && in(options.tids, thread.tid) &&
                  in(options.pools, thread.pool.empty() ? thread.name : thread.pool);
  }
  return selected;
}

std::string selection_text(const Options& options) {
  std::vector<std::string> parts;
  if (!options.pids.empty()) parts.push_back(fmt::format("pid {}", fmt::join(options.pids, ", ")));
  if (!options.tids.empty()) parts.push_back(fmt::format("tid {}", fmt::join(options.tids, ", ")));
  if (!options.pools.empty()) {
    parts.push_back(fmt::format("pool {}", fmt::join(options.pools, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

int cpu_count(const run::Contents& run) {
  for (const model::Fact& fact : run.facts) {
    if (fact.scope != "host" || fact.key != "cpus_online") continue;
    int count = 0;
    auto [end, status] =
        std::from_chars(fact.value.data(), fact.value.data() + fact.value.size(), count);
    if (status == std::errc() && count > 0) return count;
  }
  return 0;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// The rules' name sets, matched against the functions of one run.
struct Matched {
  NameSets sets;
  IdleRules idle;
  Categories categories;
  DetectorSets detectors;
  StackFeatures features;

  Matched(const RuleSet& rules, const CallTree& tree, const run::Contents& run)
      : idle(rules, sets), categories(rules, sets), detectors(rules, sets), features(tree, sets) {
    categories.place(tree, features, run);
  }
};

// The passes and what they feed. Another breakdown is one more builder here.
struct Passes {
  const run::Contents& run;
  std::vector<bool> selected;
  CallTree tree;
  Matched rules;
  WaitClassifier classifier;
  IdleJudge judge;
  OnCpuBuilder on_cpu;
  OffCpuBuilder off_cpu;
  ThreadTimeBuilder thread_time;
  LockBuilder locks;
  WaitShapes shapes;
  Handoffs handoffs;
  std::vector<ThreadCpu> cpu;  // by thread of the run
  uint64_t waits = 0;
  uint64_t waits_without_stack = 0;
  uint64_t orphans = 0;

  Passes(const run::Contents& contents, const RuleSet& set, std::vector<bool> wanted,
         std::vector<ThreadCounters> counters)
      : run(contents),
        selected(std::move(wanted)),
        tree(contents),
        rules(set, tree, contents),
        classifier(tree),
        judge(tree, rules.features, rules.idle, contents),
        on_cpu(tree),
        off_cpu(tree, contents),
        thread_time(contents, std::move(counters), selected),
        locks(tree, judge, contents),
        shapes(tree, contents.threads.size()),
        handoffs(judge),
        cpu(contents.threads.size()) {}

  bool wanted(model::ThreadId thread) const {
    return thread.value < selected.size() && selected[thread.value];
  }

  void visit(const model::Sample& sample) {
    if (sample.thread.value >= selected.size()) ++orphans;
    if (!wanted(sample.thread)) return;
    const Function* leaf = tree.leaf_of(sample.stack);
    thread_time.add_sample(sample, leaf ? leaf->kind : CodeKind::marker);
    on_cpu.add(sample);
    judge.observe_sample(sample);
    ThreadCpu& mine = cpu[sample.thread.value];
    auto role = static_cast<size_t>(rules.categories.role(tree.path_of(sample.stack)));
    mine.role_ns[role] += sample.weight_ns;
    mine.sampled_ns += sample.weight_ns;
  }

  // Whether a wait is one for work depends on what its pool does otherwise.
  void observe(const model::Wait& wait) {
    if (wanted(wait.thread)) judge.observe_wait(wait, classifier.kind_of(wait));
  }

  void visit(const model::Wait& wait) {
    if (wait.thread.value >= selected.size()) ++orphans;
    if (!wanted(wait.thread)) return;
    ++waits;
    BlockKind kind = classifier.kind_of(wait);
    bool idle = judge.idle(wait, kind);
    PlacedWait placed = thread_time.add_wait(wait, kind, idle);
    off_cpu.add(wait, kind, idle, placed);
    shapes.add(wait, kind, placed);
    handoffs.add(wait, kind, idle, placed);
    if (!idle) locks.add(wait, kind, placed);
    if (placed.blocked_ns > 0 && !has_stack(wait.stack)) ++waits_without_stack;
  }

  bool has_stack(model::StackId stack) const {
    model::StackEnd end = tree.end_of(stack);
    return tree.path_of(stack) != 0 && end != model::StackEnd::not_sampled &&
           end != model::StackEnd::lost;
  }
};

// What limits the evidence of a run: times and samples, and what `thread_time` and `on_cpu` say.
Quality quality_of(const Passes& passes, const Measured& measured, const Accounting& accounting,
                   const OwnCost& own_cost) {
  Quality quality;
  quality.accounting = accounting;
  quality.own_cost = own_cost;
  add_run_facts(passes.run, quality);
  quality.samples = measured.on_cpu.samples;
  quality.waits = passes.waits;
  quality.waits_without_stack = passes.waits_without_stack;
  quality.orphans = passes.orphans;
  quality.on_cpu = stack_shares(passes.tree, passes.on_cpu.weights());
  quality.off_cpu = stack_shares(passes.tree, passes.off_cpu.weights());
  quality.unresolved_modules =
      unresolved_modules(passes.tree, passes.on_cpu.weights(), kUnresolvedModulesListed);
  auto running_ns = static_cast<double>(measured.thread_time.running_ns());
  quality.hz = ratio(static_cast<double>(quality.samples) * 1e9, running_ns);
  quality.sampled_share = ratio(static_cast<double>(measured.on_cpu.time_ns), running_ns);
  bool heap_alone = is_heap_alone(measured.run_kind);
  uint64_t taken = heap_alone ? measured.heap.allocated.samples : quality.samples + quality.waits;
  quality.lost_share = ratio(static_cast<double>(quality.lost_records),
                             static_cast<double>(taken + quality.lost_records));
  if (heap_alone) return quality;  // nothing of time was asked for
  quality.limits = limits_of(quality);
  if (is_imported(measured.run_kind)) {  // nothing can be set up better for another tool's record
    for (model::QualityNote& note : quality.limits) {
      if (!note.remedy.empty()) note.remedy = "record the server itself";
    }
  }
  return quality;
}

HandedOver handed_over(const Passes& passes, const std::vector<ThreadTime>& threads) {
  std::vector<int64_t> group_wall_ns(passes.judge.group_count());
  for (const ThreadTime& thread : threads) {
    group_wall_ns[passes.judge.group_of(thread.id)] += thread.time.wall_ns;
  }
  return passes.handoffs.finish(group_wall_ns);
}

// What the run says of itself, and which part of it was looked at.
Measured about(const run::Contents& run, const Options& options, const RuleSet& rules) {
  Measured measured;
  measured.run_path = options.run_path;
  measured.info = run.info;
  measured.run_kind = run_kind(run);
  measured.counted_unit = counted_unit(run);
  measured.window_ns = std::max<int64_t>(0, run.info.window_end_ns - run.info.window_begin_ns);
  measured.cpus = cpu_count(run);
  measured.facts = run.facts;
  measured.selection = selection_text(options);
  for (const RuleError& error : rules.errors) measured.rule_errors.push_back(error.text());
  return measured;
}

// The first stage: all that the passes counted.
Result<Measured> measure(const run::Reader& reader, const Options& options, const RuleSet& rules,
                         Passes& passes) {
  auto own_cost = read_own_cost(reader);
  if (!own_cost) return std::unexpected(own_cost.error());
  auto workload = read_workload(reader);
  if (!workload) return std::unexpected(workload.error());
  auto heap = summarise_heap(reader, passes.tree, passes.selected, options.max_heap_sites);
  if (!heap) return std::unexpected(heap.error());
  Measured measured = about(passes.run, options, rules);
  measured.workload = std::move(*workload);
  measured.heap = std::move(*heap);
  ThreadTimes times = passes.thread_time.finish();
  measured.thread_time = times.total;
  measured.processes = std::move(times.processes);
  measured.threads = std::move(times.threads);
  for (const ThreadTime& thread : measured.threads) {
    measured.thread_cpu.push_back(passes.cpu[thread.id.value]);
  }
  measured.on_cpu = passes.on_cpu.finish(options.max_functions, options.max_paths);
  measured.off_cpu = passes.off_cpu.finish(options.max_waits);
  measured.wait_shapes = passes.shapes.finish();
  measured.handed_over = handed_over(passes, measured.threads);
  if (!is_of_counts(measured.run_kind)) {  // else nothing of it is about time
    measured.categories = category_shares(passes.rules.categories, passes.tree, passes.on_cpu);
  }
  measured.role_callers = role_callers(passes.rules.categories, passes.tree, passes.on_cpu);
  measured.locks =
      passes.locks.finish(options.max_locks, measured.window_ns, measured.thread_time.busy_ns());
  measured.quality = quality_of(passes, measured, times.accounting, *own_cost);
  return measured;
}

// The third stage, after the vitals.
std::vector<Diagnosis> find(const DetectorSets& detectors, const DetectorInput& input) {
  if (is_of_counts(input.run.run_kind)) return {};  // nothing of it is about time
  std::vector<Diagnosis> findings = detect(detectors, input);
  for (Diagnosis& finding : heap_findings(input.run.heap, input.vitals)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Samples, then waits twice: whether one is for work depends on all the others.
Result<void> read_rows(const run::Reader& reader, Passes& passes) {
  run::TimeRange window{passes.run.info.window_begin_ns, passes.run.info.window_end_ns};
  auto status =
      reader.for_each_sample(window, [&](const model::Sample& sample) { passes.visit(sample); });
  if (!status) return status;
  status = passes.classifier.learn(reader);
  if (!status) return status;
  status = reader.for_each_wait(window, [&](const model::Wait& wait) { passes.observe(wait); });
  if (!status) return status;
  passes.judge.decide();
  return reader.for_each_wait(window, [&](const model::Wait& wait) { passes.visit(wait); });
}

// The stages after the first, each a function of those before.
Result<Report> conclude(const run::Reader& reader, const Options& options, const Passes& passes,
                        Measured measured) {
  auto vitals = read_vitals(measured, reader);
  if (!vitals) return std::unexpected(vitals.error());
  DetectorInput input{measured,
                      *vitals,
                      passes.tree,
                      passes.rules.features,
                      passes.rules.categories,
                      passes.on_cpu.path_weights(),
                      passes.off_cpu.wait_weights(serving_pools(measured)),
                      serving_time(measured).busy_ns(),
                      options.source};
  std::vector<Diagnosis> findings = find(passes.rules.detectors, input);
  Basis basis{measured, *vitals};
  Verdict verdict = decide(basis, findings);
  std::vector<Gain> gains = gains_of(*vitals, verdict.kind, findings);
  auto suspects = answer_suspects(options.suspects, input, verdict.kind);
  if (!suspects) return std::unexpected(suspects.error());
  bool of_time = !is_of_counts(measured.run_kind) && !is_heap_alone(measured.run_kind);
  auto not_bottlenecks = of_time ? cleared(basis, verdict.kind) : std::vector<NotBottleneck>();
  return Report{std::move(measured),        *vitals,
                std::move(verdict),         ranked(std::move(findings), std::move(gains)),
                std::move(not_bottlenecks), std::move(*suspects)};
}

}  // namespace

Result<Report> analyse(const run::Reader& reader, const Options& options) {
  const run::Contents& run = reader.contents();
  std::vector<bool> selected = select_threads(run, options);
  std::string selection = selection_text(options);
  if (!selection.empty() && std::find(selected.begin(), selected.end(), true) == selected.end()) {
    return fail("the run has no thread that matches {}", selection);
  }
  auto counters = read_thread_counters(reader);
  if (!counters) return std::unexpected(counters.error());
  const RuleSet& rules = options.rules ? *options.rules : default_rules();
  Passes passes(run, rules, std::move(selected), std::move(*counters));
  if (auto status = read_rows(reader, passes); !status) return std::unexpected(status.error());
  auto measured = measure(reader, options, rules, passes);
  if (!measured) return std::unexpected(measured.error());
  return conclude(reader, options, passes, std::move(*measured));
}

}  // namespace assay::analysis
