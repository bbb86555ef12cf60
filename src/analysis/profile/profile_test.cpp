#include "analysis/profile/profile.h"

#include <gtest/gtest.h>

#include "analysis/analyse.h"
#include "analysis/testing/fake_run.h"

namespace assay::analysis {
namespace {

constexpr int64_t kMs = kNsPerMs;

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() {
    auto process = run.add_process(100, "/opt/server");
    thread = run.add_thread(process, 101, "worker-1", "worker-*");
    other = run.add_thread(process, 102, "io-1", "io-*");
  }
  Report report(Options options = {}) {
    auto result = analyse(run, options);
    EXPECT_TRUE(result) << result.error().text();
    return result.value_or(Report{});
  }
  static const HotFunction* find(const Report& report, const std::string& name) {
    for (const HotFunction& row : report.on_cpu.functions) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  FakeRun run;
  model::ThreadId thread, other;
};

TEST_F(ProfileTest, SelfAndTotal) {
  run.add_samples(thread, run.stack({"main", "work"}), 30, 10 * kMs);
  run.add_samples(thread, run.stack({"main", "work", "libc.so.6:memcpy"}), 60, 10 * kMs);
  run.add_samples(other, run.stack({"main"}), 10, 10 * kMs);
  Report r = report();
  EXPECT_EQ(r.on_cpu.functions[0].name, "memcpy");
  EXPECT_EQ(r.on_cpu.functions[0].module, "libc.so.6");
  EXPECT_DOUBLE_EQ(r.on_cpu.functions[0].self.share, 0.6);
  EXPECT_LT(r.on_cpu.functions[0].self.low, 0.52);
  EXPECT_GT(r.on_cpu.functions[0].self.high, 0.68);
  ASSERT_TRUE(find(r, "work"));
  EXPECT_EQ(find(r, "work")->self_ns, 300 * kMs);
  EXPECT_EQ(find(r, "work")->total_ns, 900 * kMs);
  EXPECT_EQ(find(r, "main")->total_samples, 100u);
  int64_t self = 0;
  for (const HotFunction& row : r.on_cpu.functions) self += row.self_ns;
  EXPECT_EQ(self, r.on_cpu.time_ns);
}

TEST_F(ProfileTest, RecursionCountsOnce) {
  run.add_samples(thread, run.stack({"main", "walk", "walk", "visit", "walk"}), 50, 10 * kMs);
  Report r = report();
  EXPECT_EQ(find(r, "walk")->total_ns, 500 * kMs);
  EXPECT_DOUBLE_EQ(find(r, "walk")->total.share, 1);
  EXPECT_EQ(find(r, "visit")->total_samples, 50u);
}

TEST_F(ProfileTest, InlinedFunctionsAreFunctions) {
  run.add_samples(thread, run.stack({"main", "outer|middle|inner"}), 10, 10 * kMs);
  run.add_samples(thread, run.stack({"main", "middle"}), 10, 10 * kMs);
  Report r = report();
  EXPECT_EQ(find(r, "inner")->self_samples, 10u);
  EXPECT_EQ(find(r, "middle")->total_samples, 20u);
  EXPECT_EQ(find(r, "outer")->self_samples, 0u);
  const std::vector<FrameText>& frames = r.on_cpu.paths.at(0).frames;
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(frames[0].function, "inner");
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_EQ(frames[0].line, 33u);
  EXPECT_EQ(frames[2].function, "outer");
  EXPECT_FALSE(frames[2].inlined);
  EXPECT_EQ(frames[3].function, "main");
}

TEST_F(ProfileTest, AddressesInOneFunctionAreOnePath) {
  model::StackId main = run.stack({"main"});
  model::FrameId hot = run.frame("hot");
  for (int i = 0; i < 20; ++i) {
    run.add_sample(thread, run.push(main, i == 0 ? hot : run.same_function(hot)), i, 10 * kMs);
  }
  Report r = report();
  ASSERT_EQ(r.on_cpu.paths.size(), 1u);
  EXPECT_EQ(r.on_cpu.paths[0].samples, 20u);
  EXPECT_EQ(find(r, "hot")->self_samples, 20u);
}

TEST_F(ProfileTest, UnnamedAndMarkerFramesAreSaid) {
  run.add_samples(thread, run.stack({"!:1", "?:0x1234"}), 10, 10 * kMs);
  Report r = report();
  ASSERT_TRUE(find(r, "server+0x1234"));
  EXPECT_FALSE(find(r, "server+0x1234")->named);
  EXPECT_EQ(r.on_cpu.paths[0].frames[1].function, "[truncated: stack copy too short]");
  EXPECT_DOUBLE_EQ(r.quality.on_cpu.truncated, 1);
  EXPECT_DOUBLE_EQ(r.quality.on_cpu.unresolved, 1);
  ASSERT_EQ(r.quality.unresolved_modules.size(), 1u);
  EXPECT_EQ(r.quality.unresolved_modules[0].module, "server");
}

TEST_F(ProfileTest, WaitsByStackAndKind) {
  auto lock = run.stack({"main", "libc.so.6:pthread_mutex_lock", "k:futex_wait_queue"});
  auto poll = run.stack({"main", "k:ep_poll"});
  TimeNs at = 0;
  for (int i = 1; i <= 100; ++i) {
    run.add_wait(thread, lock, at, i * 1000);
    at += i * 1000 + 1000;
  }
  run.add_wait(other, poll, 0, 900 * kMs);
  run.add_wait(other, lock, 950 * kMs, 10 * kMs);
  Report r = report();
  ASSERT_EQ(r.off_cpu.paths.size(), 2u);
  EXPECT_EQ(r.off_cpu.paths[1].kind, BlockKind::poll);
  EXPECT_TRUE(r.off_cpu.paths[1].idle);  // and comes last, though it is longest
  const WaitSummary& locks = r.off_cpu.paths[0];
  EXPECT_EQ(locks.kind, BlockKind::lock);
  EXPECT_EQ(locks.count, 101u);
  EXPECT_EQ(locks.total_ns, 5050 * 1000 + 10 * kMs);
  EXPECT_EQ(locks.max_ns, 10 * kMs);
  EXPECT_EQ(locks.p99_ns, 100'000);
  EXPECT_EQ(locks.mean_ns, locks.total_ns / 101);
  ASSERT_EQ(locks.pools.size(), 2u);
  EXPECT_EQ(locks.pools[0].pool, "io-*");
}

TEST_F(ProfileTest, DamagedStackTablesDoNotLoopOrCrash) {
  auto stack = run.stack({"main", "work"});
  run.add_samples(thread, stack, 5, kMs);
  run.edit().stacks.push_back({{99}, {0}});     // a parent after its child
  run.edit().stacks.push_back({{4}, {0}});      // its own parent
  run.edit().stacks.push_back({{0}, {12345}});  // no such frame
  run.edit().frames.push_back({{77}, 0x10});    // no such module, and no locations
  run.edit().stacks.push_back({{0}, {static_cast<uint32_t>(run.edit().frames.size() - 1)}});
  for (uint32_t i = 0; i < run.edit().stacks.size() + 3; ++i) {
    run.add_sample(thread, {i}, 1, kMs);
    run.add_wait(thread, {i}, i * 1000, 500);
  }
  Report r = report();
  EXPECT_GT(r.on_cpu.samples, 5u);
  EXPECT_TRUE(find(r, "[unknown]+0x10"));
}

// A perf script file names threads, not programs: what is no library is the application.
TEST_F(ProfileTest, ImportedCodeOutsideOfLibrariesIsTheApplications) {
  run.add_samples(thread, run.stack({"main", "work"}), 30, kMs);
  run.add_samples(thread, run.stack({"main", "libz.so.1:inflate_fast_x"}), 10, kMs);
  auto share = [&](const std::string& id) {
    for (const CategoryShare& row : report().categories) {
      if (row.category.breakdown == kSubsystem && row.category.id == id) return row.share.share;
    }
    return 0.0;
  };
  run.edit().processes[0].exe = "worker-1";
  EXPECT_NEAR(share("application"), 0, 0.001) << "a recorded run knows its programs";
  run.edit().info.backend = "import: perf script";
  EXPECT_NEAR(share("application"), 0.75, 0.001);
}

}  // namespace
}  // namespace assay::analysis
