#include "analysis/analyse.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "analysis/accounted/accounted_run.h"
#include "analysis/heap/heap_findings.h"
#include "analysis/rules/detect.h"
#include "analysis/time/handoffs.h"
#include "analysis/time/wait_shapes.h"
#include "analysis/verdict/gain.h"
#include "analysis/verdict/verdict.h"
#include "analysis/verdict/vitals.h"
#include "run/selection/chosen_threads.h"

namespace assay::analysis {
namespace {

constexpr size_t kUnresolvedModulesListed = 5;

// Load, counters and losses are not known by part of the window or by stack, so a report of such a
// part would have wrong numbers.
Result<std::vector<bool>> select_threads(const run::Contents& run, const run::Selection& asked) {
  if (asked.narrows_time() || asked.narrows_stacks() || asked.without_idle) {
    return fail_with_remedy("a report is about all time and all stacks of its threads",
                            "assay export and view take a part of them");
  }
  return run::choose_threads(asked, run);
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

// The rules as the stages after the passes ask for them.
struct Rules {
  const Categories& categories;
  const DetectorSets& detectors;
  const StackFeatures& features;
};

// The passes and what they feed. Another breakdown is one more builder here.
struct Passes {
  AccountedRun& accounted;
  const run::Contents& run;
  std::vector<bool> selected;
  const CallTree& tree;
  Rules rules;
  const IdleJudge& judge;
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

  Passes(AccountedRun& whole, const DetectorSets& detectors, std::vector<bool> wanted,
         std::vector<ThreadCounters> counters)
      : accounted(whole),
        run(whole.contents()),
        selected(std::move(wanted)),
        tree(whole.tree()),
        rules{whole.rules().categories, detectors, whole.rules().features},
        judge(whole.judge()),
        on_cpu(tree),
        off_cpu(tree, run),
        thread_time(run, std::move(counters), selected),
        locks(tree, judge, run),
        shapes(tree, run.threads.size()),
        handoffs(judge),
        cpu(run.threads.size()) {}

  Result<void> read() {
    Onlooker samples;
    samples.sample = [this](const model::Sample& sample) { visit(sample); };
    if (auto settled = accounted.settle(samples); !settled) return settled;
    orphans = accounted.orphans();
    return accounted.for_each_wait(
        accounted.reader(), accounted.window(),
        [this](const model::Wait& wait) { return selected[wait.thread.value]; },
        [this](const AccountedWait& wait) { visit(wait); });
  }

  void visit(const model::Sample& sample) {
    if (!accounted.lists(sample.thread)) return;
    // Of all threads: a process's samples divide the time of its threads that have none.
    const Function* leaf = tree.leaf_of(sample.stack);
    thread_time.add_sample(sample, leaf ? leaf->kind : CodeKind::marker);
    if (!selected[sample.thread.value]) return;
    on_cpu.add(sample);
    ThreadCpu& mine = cpu[sample.thread.value];
    auto role = static_cast<size_t>(rules.categories.role(tree.path_of(sample.stack)));
    mine.role_ns[role] += sample.weight_ns;
    mine.sampled_ns += sample.weight_ns;
  }

  void visit(const AccountedWait& accounted_wait) {
    const auto& [wait, kind, idle] = accounted_wait;
    ++waits;
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

void measure_quality(const Passes& passes, Report& report) {
  Quality& quality = report.quality;
  add_run_facts(passes.run, quality);
  quality.samples = report.on_cpu.samples;
  quality.waits = passes.waits;
  quality.waits_without_stack = passes.waits_without_stack;
  quality.orphans = passes.orphans;
  quality.on_cpu = stack_shares(passes.tree, passes.on_cpu.weights());
  quality.off_cpu = stack_shares(passes.tree, passes.off_cpu.weights());
  quality.unresolved_modules =
      unresolved_modules(passes.tree, passes.on_cpu.weights(), kUnresolvedModulesListed);
  auto running_ns = static_cast<double>(report.thread_time.running_ns());
  quality.hz = ratio(static_cast<double>(quality.samples) * 1e9, running_ns);
  quality.sampled_share = ratio(static_cast<double>(report.on_cpu.time_ns), running_ns);
  quality.lost_share =
      ratio(static_cast<double>(quality.lost_records),
            static_cast<double>(quality.samples + quality.waits + quality.lost_records));
  quality.limits = limits_of(quality);
  if (is_imported(report)) {  // nothing can be set up better for what another tool recorded
    for (model::QualityNote& note : quality.limits) {
      if (!note.remedy.empty()) note.remedy = "record the server itself";
    }
  }
  if (report.heap_alone) {  // nothing of time was asked for
    uint64_t taken = report.heap.allocated.samples;
    quality.limits.clear();
    quality.lost_share = ratio(static_cast<double>(quality.lost_records),
                               static_cast<double>(taken + quality.lost_records));
  }
}

int64_t busy_of(const Report& report, const std::set<std::string>& serving) {
  int64_t sum = 0;
  for (const ThreadTime& thread : report.threads) {
    if (serving.contains(thread.pool)) sum += thread.time.busy_ns();
  }
  return sum;
}

Result<Report> report_of(AccountedRun& accounted, const DetectorSets& detectors,
                         const Options& options, std::vector<int64_t>& cpu_ns_by_stack) {
  const run::Reader& reader = accounted.reader();
  const run::Contents& run = reader.contents();
  auto selected = select_threads(run, options.selection);
  if (!selected) return std::unexpected(selected.error());
  std::string selection = run::describe(options.selection);
  auto counters = read_thread_counters(reader);
  if (!counters) return std::unexpected(counters.error());
  auto own_cost = read_own_cost(reader);
  if (!own_cost) return std::unexpected(own_cost.error());

  auto workload = read_workload(reader);
  if (!workload) return std::unexpected(workload.error());

  const RuleSet& rules = accounted.rule_set();
  Passes passes(accounted, detectors, std::move(*selected), std::move(*counters));
  if (auto read = passes.read(); !read) return std::unexpected(read.error());
  cpu_ns_by_stack = passes.on_cpu.weights();

  Report report;
  report.run_path = options.run_path;
  report.info = run.info;
  report.window_ns = std::max<int64_t>(0, run.info.window_end_ns - run.info.window_begin_ns);
  report.cpus = cpu_count(run);
  report.facts = run.facts;
  report.selection = std::move(selection);
  report.workload = std::move(*workload);
  ThreadTimes times = passes.thread_time.finish();
  report.thread_time = times.total;
  report.processes = std::move(times.processes);
  report.threads = std::move(times.threads);
  for (const ThreadTime& thread : report.threads) {
    report.thread_cpu.push_back(passes.cpu[thread.id.value]);
  }
  report.on_cpu = passes.on_cpu.finish(options.max_functions, options.max_paths);
  report.off_cpu = passes.off_cpu.finish(options.max_waits);
  report.categories = category_shares(passes.rules.categories, passes.tree, passes.on_cpu);
  report.role_callers = role_callers(passes.rules.categories, passes.tree, passes.on_cpu);
  report.locks =
      passes.locks.finish(options.max_locks, report.window_ns, report.thread_time.busy_ns());
  report.quality.accounting = times.accounting;
  report.quality.own_cost = *own_cost;
  auto heap = summarise_heap(reader, passes.tree, passes.selected, options.max_heap_sites);
  if (!heap) return std::unexpected(heap.error());
  report.heap = std::move(*heap);
  report.heap_alone = run.is_heap_alone();
  measure_quality(passes, report);
  for (const RuleError& error : rules.errors) report.rule_errors.push_back(error.text());
  passes.shapes.finish(report.vitals);
  std::vector<int64_t> group_wall_ns(passes.judge.group_count());
  for (const ThreadTime& thread : report.threads) {
    group_wall_ns[passes.judge.group_of(thread.id)] += thread.time.wall_ns;
  }
  passes.handoffs.finish(group_wall_ns, report.vitals);
  auto vitals = read_vitals(report, reader);
  if (!vitals) return std::unexpected(vitals.error());
  report.vitals = *vitals;
  std::set<std::string> serving = serving_pools(report);
  DetectorInput input{report,
                      passes.tree,
                      passes.rules.features,
                      passes.rules.categories,
                      passes.on_cpu.path_weights(),
                      passes.off_cpu.wait_weights(serving),
                      busy_of(report, serving),
                      options.source};
  report.findings = detect(passes.rules.detectors, input);
  for (Diagnosis& finding : heap_findings(report)) report.findings.push_back(std::move(finding));
  if (!imported_unit(report).empty()) {  // nothing of it is about time
    report.findings.clear();
    report.categories.clear();
  }
  report.verdict = decide(report);
  add_gains(report);
  sort_findings(report);
  if (imported_unit(report).empty() && !report.heap_alone) report.not_bottlenecks = cleared(report);
  auto suspects = answer_suspects(options.suspects, input);
  if (!suspects) return std::unexpected(suspects.error());
  report.suspects = std::move(*suspects);
  return report;
}

}  // namespace

Result<AnalysedRun> analyse_run(const run::Reader& reader, const Options& options) {
  const RuleSet& rules = options.rules ? *options.rules : default_rules();
  std::optional<DetectorSets> detectors;
  AccountedRun accounted(reader,
                         {&rules, true, [&](NameSets& sets) { detectors.emplace(rules, sets); }});
  std::vector<int64_t> cpu_ns_by_stack;
  auto report = report_of(accounted, *detectors, options, cpu_ns_by_stack);
  if (!report) return std::unexpected(report.error());
  return AnalysedRun{std::move(*report), std::move(accounted).take_tree(),
                     std::move(cpu_ns_by_stack)};
}

Result<Report> analyse(const run::Reader& reader, const Options& options) {
  auto analysed = analyse_run(reader, options);
  if (!analysed) return std::unexpected(analysed.error());
  return std::move(analysed->report);
}

}  // namespace assay::analysis
