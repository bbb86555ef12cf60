#include "view/queries.h"

#include <numeric>

#include "analysis/testing/fake_run.h"
#include "view/data/read_columns.h"

namespace assay::view {
namespace {

using analysis::FakeRun;

// One second; thread 0 runs 0.2 s, waits for a lock 0.3 s (0.1 of it on the run queue), runs on.
struct Fixture {
  std::unique_ptr<RunIndex> run;
  Fixture() {
    auto fake = std::make_unique<FakeRun>();
    auto process = fake->add_process(10, "/opt/server");
    auto one = fake->add_thread(process, 11, "worker-1", "worker-*");
    auto two = fake->add_thread(process, 12, "worker-2", "worker-*");
    auto busy = fake->stack({"main", "work", "work", "k:copy_user"});
    auto lock = fake->stack({"main", "work", "pthread_mutex_lock", "k:futex_wait"});
    fake->add_sample(one, busy, 100 * kNsPerMs, 200 * kNsPerMs);
    fake->add_sample(one, fake->stack({"main", "work"}), 700 * kNsPerMs, 500 * kNsPerMs);
    auto& wait = fake->add_wait(one, lock, 200 * kNsPerMs, 300 * kNsPerMs,
                                {model::WaitFlag::runqueue_known});
    wait.runqueue_ns = 100 * kNsPerMs;
    wait.arg = 0x7000;
    wait.waker = two;
    wait.syscall = 202;
    fake->add_wait(two, lock, 0, kNsPerSecond).syscall = 202;
    run = *RunIndex::make(std::move(fake), "fake.assay");
  }
  Selection all() const { return *select(*run, {}); }
};

int64_t sum_where(const ReadTable& table, ThreadState state) {
  int64_t sum = 0;
  const auto& states = table.numbers.at("state");
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] == state) sum += table.numbers.at("ns")[i];
  }
  return sum;
}

TEST(Tree, IsInPreorderWithItsFunctions) {
  Fixture fixture;
  ReadTable tree = read_columns(tree_columns(*fixture.run));
  const auto& depth = tree.numbers["depth"];
  ASSERT_EQ(depth.size(), fixture.run->node_count());
  EXPECT_EQ(depth[0], 0);
  for (size_t i = 1; i < depth.size(); ++i) EXPECT_LE(depth[i], depth[i - 1] + 1);
  std::vector<std::string> path;
  for (size_t i = 1; i < depth.size(); ++i) {
    path.resize(static_cast<size_t>(depth[i] - 1));
    path.push_back(tree.texts["name"][static_cast<size_t>(tree.numbers["function"][i])]);
    if (path.size() == 4) {
      EXPECT_EQ(path[0] + ">" + path[1], "main>work");
    }
  }
}

TEST(Cells, CountSamplesAndWaitsOnce) {
  Fixture fixture;
  ReadTable cells = read_columns(*cell_columns(*fixture.run, fixture.all(), {}));
  EXPECT_EQ(sum_where(cells, kKernel), 200 * kNsPerMs);
  EXPECT_EQ(sum_where(cells, kUser), 500 * kNsPerMs);
  EXPECT_EQ(sum_where(cells, kRunqueue), 100 * kNsPerMs);
  EXPECT_EQ(sum_where(cells, blocked_state(analysis::BlockKind::lock)), 1200 * kNsPerMs);
  const auto& counts = cells.numbers["count"];
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 4);
}

TEST(Cells, OfARangeAndAThread) {
  Fixture fixture;
  Selection part =
      *select(*fixture.run, {{"from", "250000000"}, {"to", "450000000"}, {"threads", "0"}});
  ReadTable cells = read_columns(*cell_columns(*fixture.run, part, {}));
  EXPECT_EQ(sum_where(cells, blocked_state(analysis::BlockKind::lock)), 150 * kNsPerMs);
  EXPECT_EQ(sum_where(cells, kRunqueue), 50 * kNsPerMs);
  EXPECT_EQ(sum_where(cells, kUser), 0);
}

TEST(Cells, BinsAddUpToTheWhole) {
  Fixture fixture;
  ReadTable one = read_columns(*cell_columns(*fixture.run, fixture.all(), {1, false, SIZE_MAX}));
  ReadTable many = read_columns(*cell_columns(*fixture.run, fixture.all(), {7, true, SIZE_MAX}));
  for (int state = 0; state < kStateCount; ++state) {
    EXPECT_EQ(sum_where(one, static_cast<ThreadState>(state)),
              sum_where(many, static_cast<ThreadState>(state)));
  }
  EXPECT_TRUE(cell_columns(*fixture.run, fixture.all(), {7, true, 2})->empty());
}

// A busy second of three threads, laid out as it is and as if it were large.
std::unique_ptr<RunIndex> busy_run(uint64_t large_rows) {
  auto fake = std::make_unique<FakeRun>();
  auto process = fake->add_process(10, "/opt/server");
  std::vector<model::StackId> stacks;
  for (int i = 0; i < 9; ++i) {
    stacks.push_back(fake->stack({"main", "f" + std::to_string(i % 3), "g" + std::to_string(i)}));
    stacks.push_back(fake->stack({"main", "f" + std::to_string(i), "k:futex_wait"}));
  }
  int64_t seed = 1;
  for (int t = 0; t < 3; ++t) {
    auto thread = fake->add_thread(process, 11 + t, "w" + std::to_string(t), "w-*");
    for (TimeNs now = 1'000 * t; now < kNsPerSecond;) {
      seed = (seed * 48271) % 2147483647;
      int64_t length = 1'000'000 + seed % 3'000'000;
      fake->add_sample(thread, stacks[static_cast<size_t>(seed % 18)], now, length / 2);
      auto& wait = fake->add_wait(thread, stacks[static_cast<size_t>(seed % 17)], now + length / 2,
                                  length / 2, {model::WaitFlag::runqueue_known});
      wait.runqueue_ns = seed % 5 == 0 ? length / 4 : 0;
      wait.syscall = 202;
      now += length;
    }
  }
  IndexOptions options;
  options.large_rows = large_rows;
  return *RunIndex::make(std::move(fake), "busy", options);
}

// Every question that a large run answers from its sums has the answer that reading gives.
TEST(LargeRun, AnswersFromSumsAsByReading) {
  auto small = busy_run(UINT64_MAX), large = busy_run(1);
  ASSERT_EQ(small->sums(), nullptr);
  ASSERT_NE(large->sums(), nullptr);
  std::vector<Parameters> questions{{},
                                    {{"threads", "1,2"}},
                                    {{"from", "123456789"}, {"to", "987654321"}},
                                    {{"from", "250000000"}, {"to", "500000000"}},
                                    {{"from", "0"}, {"to", "333333333"}, {"threads", "0"}},
                                    {{"from", "700000000"}, {"to", "1000000000"}},
                                    {{"from", "500000001"}, {"to", "500000900"}}};
  for (const Parameters& question : questions) {
    for (bool by_thread : {false, true}) {
      CellShape shape{1, by_thread, SIZE_MAX};
      EXPECT_EQ(*cell_columns(*large, *select(*large, question), shape),
                *cell_columns(*small, *select(*small, question), shape));
    }
  }
  uint32_t moments = large->moments()->count();
  EXPECT_EQ(moments, 2'000u) << "the cells of the page's heat map of a second";
  for (uint32_t bins : {moments, moments / 5, 600u}) {
    for (bool by_thread : {false, true}) {
      CellShape shape{bins, by_thread, SIZE_MAX};
      EXPECT_EQ(*timeline_columns(*large, *select(*large, {{"threads", "0,2"}}), shape),
                *timeline_columns(*small, *select(*small, {{"threads", "0,2"}}), shape));
    }
  }
}

TEST(LargeRun, ASearchIsAnsweredBySlice) {
  auto small = busy_run(UINT64_MAX), large = busy_run(1);
  Parameters question{{"functions", "2"}};
  ReadTable by_slice =
      read_columns(*timeline_columns(*large, *select(*large, question), {2000, false, SIZE_MAX}));
  uint32_t slices = large->sums()->count();
  EXPECT_EQ(by_slice.header["scalars"]["bins"], slices);
  ReadTable read =
      read_columns(*timeline_columns(*small, *select(*small, question), {slices, false, SIZE_MAX}));
  EXPECT_EQ(by_slice.numbers, read.numbers);
}

TEST(Timeline, EveryMomentHasOneState) {
  Fixture fixture;
  ReadTable lanes =
      read_columns(*timeline_columns(*fixture.run, fixture.all(), {10, true, SIZE_MAX}));
  std::map<std::pair<int64_t, int64_t>, int64_t> by_bin;
  for (size_t i = 0; i < lanes.numbers["ns"].size(); ++i) {
    by_bin[{lanes.numbers["thread"][i], lanes.numbers["bin"][i]}] += lanes.numbers["ns"][i];
  }
  ASSERT_EQ(by_bin.size(), 20u);
  for (const auto& [bin, ns] : by_bin) EXPECT_EQ(ns, 100 * kNsPerMs);
  EXPECT_EQ(sum_where(lanes, kRunning), 700 * kNsPerMs);
}

TEST(Timeline, OfARunWithoutWaitsComesFromSamples) {
  auto fake = std::make_unique<FakeRun>();
  auto thread = fake->add_thread(fake->add_process(1, "/bin/x"), 1, "x");
  fake->add_samples(thread, fake->stack({"main"}), 3, 10 * kNsPerMs);
  auto run = *RunIndex::make(std::move(fake), "imported");
  ReadTable heat = read_columns(*timeline_columns(*run, *select(*run, {}), {10, false, SIZE_MAX}));
  EXPECT_EQ(sum_where(heat, kRunning), 30 * kNsPerMs);
}

TEST(Order, FillsTheTimeBetweenWaitsWithSamples) {
  Fixture fixture;
  ReadTable order = read_columns(*order_columns(*fixture.run, fixture.all(), {0}, 1000));
  EXPECT_EQ(order.header["scalars"]["exact"], 1);
  const auto& begin = order.numbers["begin"];
  const auto& ns = order.numbers["ns"];
  ASSERT_EQ(begin.size(), 4u);  // ran, blocked, queued, ran
  int64_t at = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    EXPECT_EQ(begin[i], at);
    at += ns[i];
  }
  EXPECT_EQ(at, kNsPerSecond);
  EXPECT_EQ(order.numbers["state"],
            (std::vector<int64_t>{kKernel, kFirstBlocked, kRunqueue, kUser}));
  ReadTable coarse = read_columns(*order_columns(*fixture.run, fixture.all(), {0}, 3));
  EXPECT_EQ(coarse.header["scalars"]["exact"], 0);
}

TEST(Locks, ByAddressWithWaitersAndWakers) {
  Fixture fixture;
  ReadTable locks = read_columns(*lock_columns(*fixture.run, fixture.all(), 100));
  ASSERT_EQ(locks.numbers["address"].size(), 2u);
  EXPECT_EQ(locks.numbers["total"][0], kNsPerSecond);  // longest first
  EXPECT_EQ(locks.numbers["address"][1], 0x7000);
  EXPECT_EQ(locks.numbers["total"][1], 200 * kNsPerMs);
  EXPECT_EQ(locks.numbers["waker_lock"], std::vector<int64_t>{1});
  EXPECT_EQ(locks.numbers["waker_thread"], std::vector<int64_t>{1});
}

TEST(Waits, ByPathWithQuantiles) {
  Fixture fixture;
  ReadTable waits = read_columns(*wait_columns(*fixture.run, fixture.all(), 100));
  ASSERT_EQ(waits.numbers["count"].size(), 2u);  // lock, run queue
  EXPECT_EQ(waits.numbers["count"][0], 2);
  EXPECT_EQ(waits.numbers["max"][0], kNsPerSecond);
  EXPECT_EQ(waits.numbers["p50"][0], 200 * kNsPerMs);
}

TEST(Lines, SelfAtTheLeafTotalOnceAStack) {
  auto fake = std::make_unique<FakeRun>();
  auto thread = fake->add_thread(fake->add_process(1, "/bin/x"), 1, "x");
  fake->add_sample(thread, fake->stack({"main", "loop", "loop"}), 10, 100);
  auto run = *RunIndex::make(std::move(fake), "x");
  ReadTable lines = read_columns(*line_columns(*run, *select(*run, {})));
  int64_t self = 0;
  for (size_t i = 0; i < lines.numbers["line"].size(); ++i) {
    self += lines.numbers["cpu_self"][i];
    EXPECT_LE(lines.numbers["cpu_total"][i], 100);
  }
  EXPECT_EQ(self, 100);
}

TEST(Source, OnlyOfFilesTheRunNamesThatLookLikeSource) {
  auto fake = std::make_unique<FakeRun>();
  auto thread = fake->add_thread(fake->add_process(1, "/bin/x"), 1, "x");
  auto frame = fake->frame("main");
  fake->edit().locations[frame.value][0].file = "/etc/passwd";
  fake->add_sample(thread, fake->push({}, frame), 10, 100);
  auto run = *RunIndex::make(std::move(fake), "x");
  EXPECT_FALSE(source_json(*run, run->reader(), "/etc/hostname", 1, 5));
  auto named = source_json(*run, run->reader(), "/etc/passwd", 1, 5);
  ASSERT_TRUE(named);
  auto json = nlohmann::json::parse(*named);
  EXPECT_EQ(json["origin"], "none");
  for (const auto& line : json["lines"]) EXPECT_EQ(line, "");
}

TEST(Heap, ByCallPath) {
  auto fake = std::make_unique<FakeRun>();
  auto thread = fake->add_thread(fake->add_process(1, "/bin/x"), 1, "x");
  auto other = fake->add_thread({0}, 2, "y");
  auto kept = fake->stack({"main", "keep", "malloc"}),
       freed = fake->stack({"main", "pass", "malloc"});
  // As large as the mean between samples: each stands for a little more than itself.
  fake->add_alloc(thread, kept, 10 * kNsPerMs, 1 << 20, 1);
  fake->add_alloc(other, freed, 20 * kNsPerMs, 1 << 20, 1, 30 * kNsPerMs);
  auto run = *RunIndex::make(std::move(fake), "heap");
  ReadTable all = read_columns(*heap_columns(*run, *select(*run, {})));
  ASSERT_EQ(all.numbers["node"].size(), 2u);
  auto at = [&](model::StackId stack) {
    const auto& nodes = all.numbers["node"];
    return static_cast<size_t>(std::find(nodes.begin(), nodes.end(), run->node_of(stack)) -
                               nodes.begin());
  };
  EXPECT_EQ(all.numbers["live"][at(kept)], 1 << 20);
  EXPECT_EQ(all.numbers["live"][at(freed)], 0);
  EXPECT_EQ(all.numbers["allocated"][at(freed)], 1 << 20);
  ReadTable one = read_columns(*heap_columns(*run, *select(*run, {{"threads", "0"}})));
  EXPECT_EQ(one.numbers["node"].size(), 1u);
}

TEST(Heap, SumsOfAnImportByCallPath) {
  auto fake = std::make_unique<FakeRun>();
  auto thread = fake->add_thread(fake->add_process(1, "/bin/x"), 1, "x");
  auto kept = fake->stack({"main", "keep"});
  fake->add_heap_sum({thread, kept, 1000, 10, 5000, 50, 0});
  fake->add_heap_sum({thread, kept, 7, 1, 7, 1, 0});
  auto run = *RunIndex::make(std::move(fake), "heap");
  ReadTable all = read_columns(*heap_columns(*run, *select(*run, {})));
  ASSERT_EQ(all.numbers["node"].size(), 1u);
  EXPECT_EQ(all.numbers["node"][0], run->node_of(kept));
  EXPECT_EQ(all.numbers["live"][0], 1007);
  EXPECT_EQ(all.numbers["live_objects"][0], 11);
  EXPECT_EQ(all.numbers["allocated"][0], 5007);
  EXPECT_EQ(all.numbers["objects"][0], 51);
  auto meta = nlohmann::json::parse(meta_json(*run));
  EXPECT_EQ(meta["heap_only"], true);
}

TEST(EmptyRun, EveryQuestionHasAnAnswer) {
  auto run = *RunIndex::make(std::make_unique<FakeRun>(), "empty");
  Selection all = *select(*run, {});
  read_columns(tree_columns(*run));
  read_columns(*cell_columns(*run, all, {}));
  read_columns(*timeline_columns(*run, all, {10, true, SIZE_MAX}));
  read_columns(*wait_columns(*run, all, 10));
  read_columns(*lock_columns(*run, all, 10));
  read_columns(*line_columns(*run, all));
  read_columns(*heap_columns(*run, all));
  read_columns(*series_columns(*run, run->reader(), 10));
  EXPECT_EQ(nlohmann::json::parse(meta_json(*run))["threads"].size(), 0u);
}

}  // namespace
}  // namespace assay::view
