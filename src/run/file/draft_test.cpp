// Runs that are written as drafts; the program that wrote them moves them to their final path.
#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/private_file.h"
#include "run/file/sqlite.h"
#include "run/reader.h"
#include "run/run_fixture.h"
#include "run/writer.h"

namespace assay::run {
namespace {

class Draft : public ::testing::Test {
 protected:
  std::unique_ptr<Writer> create() {
    auto file = PrivateFile::make_at(path_);
    EXPECT_TRUE(file) << file.error().text();
    return Writer::create_draft(std::move(*file), path_, fixture_info());
  }
  void write(int samples, bool flush_between) {
    auto writer = create();
    add_fixture_tables(*writer);
    for (int i = 0; i < samples; ++i) {
      writer->add_sample({kFixtureBegin + i * kNsPerUs, {0}, {1}, 1'000, 0});
    }
    if (flush_between) {
      ASSERT_TRUE(writer->flush(kFixtureBegin + kNsPerSecond));
    }
    writer->add_sample({kFixtureBegin + kNsPerSecond, {1}, {2}, 1'000, 0});
    model::RunInfo info = fixture_info();
    info.window_end_ns = kFixtureBegin + 2 * kNsPerSecond;
    auto done = writer->finish(info);
    ASSERT_TRUE(done) << done.error().text();
  }
  void expect_rows(uint64_t rows) {
    auto reader = Reader::open(path_);
    ASSERT_TRUE(reader) << reader.error().text();
    EXPECT_EQ(*(*reader)->row_count(), rows);
    EXPECT_TRUE((*reader)->contents().info.finished);
    EXPECT_EQ((*reader)->contents().threads.size(), kFixtureThreads);
  }
  int64_t page_bytes() {
    auto database = Database::open_unguarded(path_, SQLITE_OPEN_READONLY);
    return database ? database->query_int("PRAGMA page_size").value_or(0) : 0;
  }
  bool exists(const std::string& path) { return std::filesystem::exists(path); }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.file("draft.assay");
};

TEST_F(Draft, AShortOneIsWrittenOnceInSmallPages) {
  write(1'000, false);
  expect_rows(1'001);
  EXPECT_EQ(page_bytes(), 1024);
}

TEST_F(Draft, ALongOneHasLargePages) {
  write(200'000, false);
  expect_rows(200'001);
  EXPECT_GT(page_bytes(), 1024);
}

TEST_F(Draft, OneThatIsFlushedHoldsAll) {
  write(1'000, true);
  expect_rows(1'001);
  EXPECT_FALSE(exists(path_ + "-journal"));
}

TEST_F(Draft, AFullDiskIsToldWithoutAPromise) {
  auto writer = create();
  ASSERT_TRUE(writer);
  add_fixture_tables(*writer);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small{16 << 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  auto done = writer->finish(fixture_info());
  setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what.find("holds what was committed"), std::string::npos)
      << done.error().text();
  EXPECT_FALSE(writer->flush(1)) << "it is closed";
}

}  // namespace
}  // namespace assay::run
