#include "analysis/accounted/accounted_run.h"

namespace assay::analysis {

MatchedRules::MatchedRules(const RuleSet& rules, const CallTree& tree, const run::Contents& run,
                           const std::function<void(NameSets&)>& more_names)
    : idle(rules, sets), categories(rules, sets), features(tree, [&]() -> const NameSets& {
        if (more_names) more_names(sets);
        return sets;
      }()) {
  categories.place(tree, features, run);
}

AccountedRun::AccountedRun(const run::Reader& reader, const AccountOptions& options)
    : reader_(reader),
      rule_set_(options.rules ? *options.rules : default_rules()),
      tree_(reader.contents()),
      classifier_(tree_) {
  if (!options.idle) return;
  rules_ = std::make_unique<MatchedRules>(rule_set_, tree_, contents(), options.more_names);
  judge_ = std::make_unique<IdleJudge>(tree_, rules_->features, rules_->idle, contents());
}

Result<void> AccountedRun::settle(const Onlooker& onlooker) {
  if (auto learnt = classifier_.learn(reader_); !learnt || !judge_) return learnt;
  run::TimeRange range = window();
  range.stop = onlooker.stop;
  kinds_of_stack_.resize(contents().stacks.size());
  if (auto read = observe_waits(range, onlooker); !read) return read;
  if (auto read = observe_samples(range, onlooker); !read) return read;
  judge_->decide();
  remember_answers();
  return {};
}

Result<void> AccountedRun::observe_waits(const run::TimeRange& range, const Onlooker& onlooker) {
  return reader_.for_each_wait(range, [&](const model::Wait& wait) {
    if (onlooker.wait) onlooker.wait(wait);
    if (!lists(wait.thread)) {
      ++orphans_;
      return;
    }
    BlockKind kind = classifier_.kind_of(wait);
    if (wait.stack.value < kinds_of_stack_.size()) {
      kinds_of_stack_[wait.stack.value] |= 1u << static_cast<int>(kind);
    }
    judge_->observe_wait(wait, kind);
  });
}

Result<void> AccountedRun::observe_samples(const run::TimeRange& range, const Onlooker& onlooker) {
  return reader_.for_each_sample(range, [&](const model::Sample& sample) {
    if (onlooker.sample) onlooker.sample(sample);
    if (!lists(sample.thread)) {
      ++orphans_;
      return;
    }
    judge_->observe_sample(sample);
  });
}

// Asks once for every kind of wait that there is: the judge keeps its answers, and from here on
// they are only looked up, by several threads at once.
void AccountedRun::remember_answers() {
  for (uint32_t stack = 0; stack < kinds_of_stack_.size(); ++stack) {
    for (int kind = 0; kind < kBlockKindCount; ++kind) {
      if ((kinds_of_stack_[stack] >> kind & 1) == 0) continue;
      model::Wait wait;
      wait.stack = {stack};
      (void)judge_->idle(wait, static_cast<BlockKind>(kind));
    }
  }
  kinds_of_stack_ = {};
}

std::vector<std::string_view> AccountedRun::category_names() const {
  std::vector<std::string_view> names;
  for (const Category& category : rules_->categories.all()) names.push_back(category.name);
  return names;
}

}  // namespace assay::analysis
