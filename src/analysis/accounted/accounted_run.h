// AccountedRun: a run whose time is accounted for. Every wait has a kind and is either idle (a wait
// for work) or part of the work, and every call path has a category.
//
// Reader, call tree, wait kinds, rules and idle are put together here and nowhere else; report,
// page, exports and comparisons all start from it. In: a run::Reader and rules; both must outlive
// it. settle() reads the run once; after that rows stream through for_each_sample() and
// for_each_wait(). Nothing is kept for each row, so that a large run needs no more memory than its
// stacks. What is idle is a matter of the whole run: it does not depend on the part that is shown.
// Threads: settle() on one; after it nothing changes, and any thread may ask, each with a reader of
// its own (Reader::twin()). Without idle (AccountOptions) one thread at a time.
// Failures: the reader's. Rows of threads that the run does not list are counted and left out.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "analysis/profile/call_tree.h"
#include "analysis/profile/categories.h"
#include "analysis/rules/rule_set.h"
#include "analysis/rules/stack_features.h"
#include "analysis/time/idle_judge.h"
#include "analysis/time/wait_classifier.h"
#include "base/result.h"
#include "model/time/wait_pieces.h"
#include "run/reader.h"

namespace assay::analysis {

struct AccountOptions {
  const RuleSet* rules = nullptr;  // null: the built-in rules
  // False: nothing is idle and there are no categories. settle() then reads hardly anything.
  bool idle = true;
  // Further name sets to match against the functions in the same go (detectors).
  std::function<void(NameSets&)> more_names = {};
};

struct AccountedWait {
  const model::Wait& wait;
  BlockKind kind = BlockKind::unknown;
  bool idle = false;  // it waits for work
  IdleReason reason = IdleReason::no_evidence;
};

// Looks on while settle() reads: every wait of the window, then every sample of it.
struct Onlooker {
  std::function<void(const model::Wait&)> wait = {};
  std::function<void(const model::Sample&)> sample = {};
  const std::atomic<bool>* stop = nullptr;  // as run::TimeRange's
};

// The rules' name sets, matched against the functions of one run.
struct MatchedRules {
  NameSets sets;
  IdleRules idle;
  Categories categories;
  StackFeatures features;
  MatchedRules(const RuleSet& rules, const CallTree& tree, const run::Contents& run,
               const std::function<void(NameSets&)>& more_names);
};

class AccountedRun {
 public:
  explicit AccountedRun(const run::Reader& reader, const AccountOptions& options = {});
  AccountedRun(const AccountedRun&) = delete;
  AccountedRun& operator=(const AccountedRun&) = delete;

  // Once, before any wait is asked for.
  Result<void> settle(const Onlooker& onlooker = {});

  const run::Reader& reader() const { return reader_; }
  const run::Contents& contents() const { return reader_.contents(); }
  run::TimeRange window() const {
    return {contents().info.window_begin_ns, contents().info.window_end_ns};
  }
  const CallTree& tree() const { return tree_; }
  // The tree alone, when all else has been asked.
  CallTree take_tree() && { return std::move(tree_); }
  const RuleSet& rule_set() const { return rule_set_; }
  // Only where idle was asked for.
  const MatchedRules& rules() const { return *rules_; }
  const IdleJudge& judge() const { return *judge_; }

  // By path: index into category_names(), in the breakdown by subsystem.
  uint32_t category_of(PathIndex path) const { return rules_->categories.owner(0, path); }
  std::vector<std::string_view> category_names() const;

  // Samples and waits in the window of threads that the run does not list; known with idle.
  uint64_t orphans() const { return orphans_; }

  bool lists(model::ThreadId thread) const { return thread.value < contents().threads.size(); }
  AccountedWait account(const model::Wait& wait) const {
    BlockKind kind = classifier_.kind_of(wait);
    IdleReason reason = judge_ ? judge_->reason(wait, kind) : IdleReason::no_evidence;
    return {wait, kind, is_idle(reason), reason};
  }

  // Rows of listed threads, by this reader of the run. visit(const model::Sample&).
  template <class Visit>
  Result<void> for_each_sample(const run::Reader& rows, const run::TimeRange& range,
                               const Visit& visit) const {
    return rows.for_each_sample(range, [&](const model::Sample& sample) {
      if (lists(sample.thread)) visit(sample);
    });
  }
  // visit(const AccountedWait&) of every wait that touches the range and for which
  // wanted(const model::Wait&) holds. model::WaitPieces divides a wait, ThreadCover also keeps a
  // thread's waits from overlapping.
  template <class Wanted, class Visit>
  Result<void> for_each_wait(const run::Reader& rows, const run::TimeRange& range,
                             const Wanted& wanted, const Visit& visit) const {
    return rows.for_each_wait(range, [&](const model::Wait& wait) {
      if (lists(wait.thread) && wanted(wait)) visit(account(wait));
    });
  }

 private:
  Result<void> observe_waits(const run::TimeRange& range, const Onlooker& onlooker);
  Result<void> observe_samples(const run::TimeRange& range, const Onlooker& onlooker);
  void remember_answers();

  const run::Reader& reader_;
  const RuleSet& rule_set_;
  CallTree tree_;
  WaitClassifier classifier_;
  std::unique_ptr<MatchedRules> rules_;
  std::unique_ptr<IdleJudge> judge_;
  std::vector<uint32_t> kinds_of_stack_;  // bit i: some wait of it is of kind i; while settling
  uint64_t orphans_ = 0;
};

}  // namespace assay::analysis
