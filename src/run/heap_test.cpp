// Sampled allocations in the run file: written, read back, queried.
#include <gtest/gtest.h>

#include "run/names.h"
#include "run/run_fixture.h"
#include "run/sql/sql.h"
#include "run/file/sqlite.h"

namespace assay::run {
namespace {

model::HeapAlloc allocation(uint64_t id) {
  model::HeapAlloc alloc;
  alloc.id = id;
  alloc.time = kFixtureBegin + static_cast<TimeNs>(id) * 1'000'003;
  alloc.thread = {static_cast<uint32_t>(id % kFixtureThreads)};
  alloc.stack = {static_cast<uint32_t>(1 + id % kFixtureStacks)};
  alloc.size_bytes = 1 + id * 977;
  alloc.rate_bytes = id % 100 == 99 ? 1 << 20 : 1 << 19;
  alloc.function = static_cast<model::HeapFunction>(id % model::kHeapFunctionCount);
  return alloc;
}

class HeapInRun : public testing::Test {
 protected:
  static constexpr uint64_t kCount = 5000;

  void SetUp() override {
    path_ = scratch_.file("heap.assay");
    auto writer = Writer::create(path_, fixture_info(), false);
    ASSERT_TRUE(writer) << writer.error().text();
    add_fixture_tables(**writer);
    for (uint64_t id = 0; id < kCount; ++id) {
      (*writer)->add_heap_alloc(allocation(id));
      // What was allocated in one flush may be freed in another.
      if (id >= 500 && id % 2 == 0) (*writer)->add_heap_free({allocation(id).time, {1}, id - 500});
      if (id % 1000 == 999) {
        ASSERT_TRUE((*writer)->flush(allocation(id).time));
      }
    }
    (*writer)->add_heap_snapshot({{1}, kFixtureBegin + 5, 1000, 10, 3});
    (*writer)->add_heap_sum({{1}, {2}, 1000, 10, 3000, 31, 524288});
    (*writer)->add_heap_sum({{1}, {kFixtureStacks + 1000}, 1, 1, 1, 1, 0});  // of no known stack
    model::RunInfo info = fixture_info();
    info.window_end_ns = kFixtureBegin + 10 * kNsPerSecond;
    ASSERT_TRUE((*writer)->finish(info));
  }

  ScratchDirectory scratch_;
  std::string path_;
};

TEST_F(HeapInRun, EveryAllocationAndFreeComesBack) {
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE((*reader)->contents().has_heap);
  ASSERT_EQ((*reader)->contents().heap_snapshots.size(), 1u);
  EXPECT_EQ((*reader)->contents().heap_snapshots[0].live_bytes, 1000);
  std::vector<bool> seen(kCount);
  auto done = (*reader)->for_each_heap_alloc({}, [&](const model::HeapAlloc& row) {
    model::HeapAlloc expected = allocation(row.id);
    EXPECT_EQ(row.time, expected.time);
    EXPECT_EQ(row.thread, expected.thread);
    EXPECT_EQ(row.stack, expected.stack);
    EXPECT_EQ(row.size_bytes, expected.size_bytes);
    EXPECT_EQ(row.rate_bytes, expected.rate_bytes);
    EXPECT_EQ(row.function, expected.function);
    EXPECT_FALSE(seen[row.id]);
    seen[row.id] = true;
  });
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<long>(kCount));
  uint64_t frees = 0;
  done = (*reader)->for_each_heap_free({}, [&](const model::HeapFree& row) {
    EXPECT_EQ(row.time, allocation(row.id + 500).time);
    ++frees;
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(frees, (kCount - 500) / 2);
}

TEST_F(HeapInRun, SumsOfAnotherProfilerComeBack) {
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader) << reader.error().text();
  const Contents& run = (*reader)->contents();
  ASSERT_EQ(run.heap_sums.size(), 1u) << "one that refers to nothing is left out";
  const model::HeapSum& sum = run.heap_sums[0];
  EXPECT_EQ(sum.thread.value, 1u);
  EXPECT_EQ(sum.stack.value, 2u);
  EXPECT_EQ(sum.live_bytes, 1000);
  EXPECT_EQ(sum.live_objects, 10);
  EXPECT_EQ(sum.bytes, 3000);
  EXPECT_EQ(sum.objects, 31);
  EXPECT_EQ(sum.rate_bytes, 524288);
  EXPECT_FALSE(run.heap_imported) << "what the run is, is told by a fact";
}

TEST_F(HeapInRun, DamagedSumsAreRefused) {
  for (const char* damage :
       {"UPDATE heap_sum SET bytes = -1", "UPDATE heap_sum SET stack = 1 << 40",
        "UPDATE heap_sum SET thread = 77777",
        "UPDATE heap_sum SET bytes = 1 << 62, live_bytes = 1 << 62"}) {
    std::string bad = scratch_.file("bad.assay");
    std::filesystem::copy_file(path_, bad, std::filesystem::copy_options::overwrite_existing);
    auto database = Database::open_unguarded(bad, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute(damage));
    database->close();
    auto reader = Reader::open(bad);
    ASSERT_FALSE(reader) << damage;
    EXPECT_NE(reader.error().what.find("heap_sum"), std::string::npos) << reader.error().what;
  }
}

TEST_F(HeapInRun, SqlJoinsAllocationsWithTheirEnds) {
  std::vector<SqlValue> row;
  auto query = [&](const std::string& text) {
    auto done = run_sql(path_, text, {nullptr, [&](std::span<const SqlValue> values) {
                                        row.assign(values.begin(), values.end());
                                        return true;
                                      }});
    ASSERT_TRUE(done) << done.error().text();
  };
  query("SELECT count(*), count(freed_ns), sum(size), min(lifetime_ns) FROM heap");
  EXPECT_EQ(std::get<int64_t>(row[0]), static_cast<int64_t>(kCount));
  EXPECT_EQ(std::get<int64_t>(row[1]), static_cast<int64_t>((kCount - 500) / 2));
  EXPECT_EQ(std::get<int64_t>(row[3]), 500 * 1'000'003);
  query("SELECT sum(weight) FROM heap WHERE id = 3");
  EXPECT_DOUBLE_EQ(std::get<double>(row[0]), allocation(3).weight());
  query("SELECT count(*) FROM heap WHERE time_s < 1");
  EXPECT_EQ(std::get<int64_t>(row[0]), 1000);
}

TEST_F(HeapInRun, RunsWithoutSuchTablesAreRead) {
  std::string old = scratch_.file("old.assay");
  std::filesystem::copy_file(path_, old);
  auto database = Database::open_unguarded(old, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);
  ASSERT_TRUE(
      database->execute("DROP TABLE heap_block; DROP TABLE heap_free_block; DROP TABLE "
                        "heap_snapshot; DROP TABLE heap_sum"));
  database->close();
  auto reader = Reader::open(old);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_FALSE((*reader)->contents().has_heap);
  int rows = 0;
  EXPECT_TRUE((*reader)->for_each_heap_alloc({}, [&](const model::HeapAlloc&) { ++rows; }));
  EXPECT_EQ(rows, 0);
}

// One stack from these names, leaf first.
std::string site_of(const std::vector<std::string>& leaf_first) {
  Contents contents;
  contents.modules = {{{0}, model::ModuleKind::elf, "/usr/bin/server", ""}};
  contents.frames.resize(1);
  contents.locations.resize(1);
  contents.stacks.resize(1);
  for (size_t i = leaf_first.size(); i-- > 0;) {  // parents first
    auto id = static_cast<uint32_t>(contents.frames.size());
    contents.frames.push_back({{0}, id});
    contents.locations.push_back({{leaf_first[i], "", "", 0, 0, false}});
    contents.stacks.push_back({{id - 1}, {id}});
  }
  return allocation_site(contents, {static_cast<uint32_t>(leaf_first.size())});
}

TEST(AllocationSite, IsWhoWantedTheMemory) {
  EXPECT_EQ(site_of({"operator new(unsigned long)", "__gnu_cxx::new_allocator<int>::allocate(long)",
                     "std::vector<int>::reserve(unsigned long)", "kv::put(int)", "main"}),
            "kv::put(int)");
  EXPECT_EQ(site_of({"zmalloc", "createObject", "main"}), "createObject");
  EXPECT_EQ(site_of({"kv::put(int)", "main"}), "kv::put(int)");
  EXPECT_EQ(site_of({"malloc", "std::locale::init()"}), "std::locale::init()");
  EXPECT_EQ(site_of({"malloc"}), "malloc") << "nothing else is known";
  EXPECT_EQ(site_of({}), "");
}

TEST(HeapAlloc, StandsForMoreTheSmallerItIs) {
  model::HeapAlloc alloc;
  alloc.rate_bytes = 1000;
  alloc.size_bytes = 1'000'000;
  EXPECT_NEAR(alloc.weight(), 1, 1e-9);
  alloc.size_bytes = 1;
  EXPECT_NEAR(alloc.weight(), 1000.5, 0.01);
  alloc.size_bytes = 0;
  EXPECT_EQ(alloc.weight(), 1);
}

}  // namespace
}  // namespace assay::run
