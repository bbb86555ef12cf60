#include "analysis/rules/run_rules.h"

#include <gmock/gmock.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"
#include "analysis/time/wait_classifier.h"

namespace assay::analysis {
namespace {

// A worker that waits for work in its loop, and for a lock below it.
struct Served {
  FakeRun run;
  model::ThreadId thread = run.add_thread(run.add_process(7, "/opt/server"), 7, "worker");
  model::StackId loop = run.stack({"main", "event_base_loop", "epoll_wait", "k:ep_poll"});
  model::StackId lock =
      run.stack({"main", "event_base_loop", "answer", "pthread_mutex_lock", "k:futex_wait"});

  Served() {
    run.add_samples(thread, run.stack({"main", "event_base_loop", "answer", "compress"}), 20,
                    10 * kNsPerMs);
    run.add_wait(thread, loop, 200 * kNsPerMs, 700 * kNsPerMs);
    run.add_wait(thread, lock, 900 * kNsPerMs, 100 * kNsPerMs);
  }
};

TEST(RunRules, WhatIsIdleIsWhatTheReportCallsThat) {
  Served served;
  CallTree tree(served.run.contents());
  WaitClassifier classifier(tree);
  ASSERT_TRUE(classifier.learn(served.run));
  RunRules rules(tree, served.run.contents());
  run::TimeRange all{0, kNsPerSecond};
  ASSERT_TRUE(served.run.for_each_wait(
      all, [&](const model::Wait& wait) { rules.observe(wait, classifier.kind_of(wait)); }));
  ASSERT_TRUE(
      served.run.for_each_sample(all, [&](const model::Sample& sample) { rules.observe(sample); }));
  rules.decide();
  int64_t idle_ns = 0;
  ASSERT_TRUE(served.run.for_each_wait(all, [&](const model::Wait& wait) {
    if (rules.idle(wait, classifier.kind_of(wait))) idle_ns += wait.duration_ns;
  }));
  EXPECT_EQ(idle_ns, 700 * kNsPerMs);
  auto report = analyse(served.run, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->thread_time.idle_ns, idle_ns);
}

TEST(RunRules, EveryPathHasACategoryWithAName) {
  Served served;
  CallTree tree(served.run.contents());
  RunRules rules(tree, served.run.contents());
  ASSERT_FALSE(rules.category_names().empty());
  for (PathIndex path = 1; path < tree.paths().size(); ++path)
    EXPECT_LT(rules.category_of(path), rules.category_names().size());
}

TEST(RunRules, RowsOfUnlistedThreadsAreLeftOut) {
  Served served;
  CallTree tree(served.run.contents());
  RunRules rules(tree, served.run.contents());
  model::Wait wait;
  wait.thread = {99};
  wait.stack = served.loop;
  wait.duration_ns = kNsPerMs;
  rules.observe(wait, BlockKind::poll);
  rules.observe(model::Sample{0, {99}, served.loop, kNsPerMs, 0});
  rules.decide();
}

}  // namespace
}  // namespace assay::analysis
