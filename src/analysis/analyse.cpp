#include "analysis/analyse.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "analysis/accounted/accounted_run.h"
#include "analysis/heap/heap_findings.h"
#include "analysis/idle/idle_sites.h"
#include "analysis/rules/detect.h"
#include "analysis/time/handoffs.h"
#include "analysis/time/parallelism.h"
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

// Who else used so much that it may matter.
model::OtherUsers notable_others(const run::Contents& run) {
  constexpr double kLeastCpus = 0.02, kLeastDiskBytesPerS = 1e6;
  model::OtherUsers others = model::others_in(run.facts);
  std::erase_if(others.largest, [&](const model::OtherUser& user) {
    return user.cpus < kLeastCpus && user.disk_bytes_per_s.value_or(0) < kLeastDiskBytesPerS;
  });
  return others;
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
  IdleSites idle_sites;
  ParallelismBuilder parallelism;
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
        idle_sites(tree, judge, run),
        parallelism(run),
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
    parallelism.add_sample(sample);
    ThreadCpu& mine = cpu[sample.thread.value];
    auto role = static_cast<size_t>(rules.categories.role(tree.path_of(sample.stack)));
    mine.role_ns[role] += sample.weight_ns;
    mine.sampled_ns += sample.weight_ns;
  }

  void visit(const AccountedWait& accounted_wait) {
    const auto& [wait, kind, idle, reason] = accounted_wait;
    ++waits;
    PlacedWait placed = thread_time.add_wait(wait, kind, idle);
    off_cpu.add(wait, kind, idle, placed);
    shapes.add(wait, kind, placed);
    handoffs.add(wait, kind, idle, placed);
    idle_sites.add(wait, kind, reason, placed);
    parallelism.add_wait(wait, idle);
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
  measured.others = notable_others(run);
  measured.selection = run::describe(options.selection);
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
  auto accelerators = read_accelerators(reader);
  if (!accelerators) return std::unexpected(accelerators.error());
  Measured measured = about(passes.run, options, rules);
  measured.accelerators = std::move(*accelerators);
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
  measured.idle_decisions = passes.idle_sites.finish(measured.thread_time.wall_ns);
  measured.parallelism = passes.parallelism.finish(measured.threads, serving_pools(measured));
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

// CPU time that only waits for a device is no work: what is found in it is not a cost.
std::vector<PathWeight> work_of(const Passes& passes) {
  std::vector<PathWeight> work = passes.on_cpu.path_weights();
  std::erase_if(work, [&](const PathWeight& weight) {
    return passes.rules.categories.role(weight.path) == CategoryRole::accelerator;
  });
  return work;
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
                      work_of(passes),
                      passes.off_cpu.wait_weights(serving_pools(measured)),
                      serving_time(measured).busy_ns(),
                      options.source};
  std::vector<Diagnosis> findings = find(passes.rules.detectors, input);
  Basis basis{measured, *vitals};
  Verdict verdict = decide(basis, findings);
  Demands demands = demands_of(measured, *vitals);
  std::vector<Gain> gains = gains_of({demands, *vitals, verdict.kind}, findings);
  auto suspects = answer_suspects(options.suspects, input, verdict.kind);
  if (!suspects) return std::unexpected(suspects.error());
  bool of_time = !is_of_counts(measured.run_kind) && !is_heap_alone(measured.run_kind);
  auto not_bottlenecks = of_time ? cleared(basis, verdict.kind) : std::vector<NotBottleneck>();
  return Report{std::move(measured),        *vitals, std::move(demands),
                std::move(verdict),         ranked(std::move(findings), std::move(gains)),
                std::move(not_bottlenecks), std::move(*suspects)};
}

// A part of a server is no server: a report about a part has the verdict of the whole run, and what
// its findings would bring is a matter of the whole as well.
void take_verdict_of_whole(const Report& whole, Report& part) {
  part.verdict = whole.verdict;
  part.verdict.of_whole_run = true;
  part.verdict.sentence = "Of the whole run: " + part.verdict.sentence;
  part.not_bottlenecks = whole.not_bottlenecks;
  for (Finding& finding : part.findings) {
    finding.gain = {std::nullopt, "not computed for a part of the run", std::nullopt, 0};
    for (const Finding& other : whole.findings) {
      bool same = other.id == finding.id && other.where.symbol == finding.where.symbol;
      if (same) finding.gain = other.gain;
    }
  }
}

Result<Report> report_of(AccountedRun& accounted, const DetectorSets& detectors,
                         const Options& options, std::vector<int64_t>& cpu_ns_by_stack) {
  const run::Reader& reader = accounted.reader();
  const run::Contents& run = reader.contents();
  auto selected = select_threads(run, options.selection);
  if (!selected) return std::unexpected(selected.error());
  auto counters = read_thread_counters(reader);
  if (!counters) return std::unexpected(counters.error());
  Passes passes(accounted, detectors, std::move(*selected), std::move(*counters));
  if (auto read = passes.read(); !read) return std::unexpected(read.error());
  cpu_ns_by_stack = passes.on_cpu.weights();
  auto measured = measure(reader, options, accounted.rule_set(), passes);
  if (!measured) return std::unexpected(measured.error());
  return conclude(reader, options, passes, std::move(*measured));
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
  if (options.selection.narrows_threads()) {
    Options all = options;
    all.selection = {};
    all.suspects.clear();
    std::vector<int64_t> unused;
    auto whole = report_of(accounted, *detectors, all, unused);
    if (!whole) return std::unexpected(whole.error());
    take_verdict_of_whole(*whole, *report);
  }
  return AnalysedRun{std::move(*report), std::move(accounted).take_tree(),
                     std::move(cpu_ns_by_stack)};
}

Result<Report> analyse(const run::Reader& reader, const Options& options) {
  auto analysed = analyse_run(reader, options);
  if (!analysed) return std::unexpected(analysed.error());
  return std::move(analysed->report);
}

}  // namespace assay::analysis
