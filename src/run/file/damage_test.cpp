// Files that are not a run, or are damaged, give a clear Error; none may crash or hang the reader.
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "run/file/sqlite.h"
#include "run/reader.h"
#include "run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

// Reads all there is. The first Error, or "".
std::string read_everything(const std::string& path) {
  auto reader = Reader::open(path);
  if (!reader) return reader.error().text();
  const Contents& contents = (*reader)->contents();
  uint64_t touched = 0;
  auto touch = [&](const auto& row) {
    touched += contents.threads.at(row.thread.value).process.value;
    size_t depth = 0;
    for (auto id = row.stack; id.value != 0; id = contents.stacks.at(id.value).parent) {
      const model::Frame& frame = contents.frames.at(contents.stacks[id.value].frame.value);
      touched += contents.modules.at(frame.module.value).path.size();
      if (++depth > contents.stacks.size()) std::abort();  // a cycle
    }
  };
  auto samples = (*reader)->for_each_sample({}, touch);
  if (!samples) return samples.error().text();
  auto waits = (*reader)->for_each_wait({}, touch);
  if (!waits) return waits.error().text();
  for (const model::Series& series : contents.series) {
    if (auto points = (*reader)->points(series.id); !points) return points.error().text();
  }
  auto line = (*reader)->source_line("server.cc", 12);
  if (!line) return line.error().text();
  return "";
}

void run_sql_on(const std::string& path, const char* sql) {
  auto database = Database::open_unguarded(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  ASSERT_TRUE(database) << database.error().text();
  auto done = database->execute(sql);
  ASSERT_TRUE(done) << done.error().text();
}

TEST(RunDamage, WhatIsNoRunSaysWhatItIs) {
  ScratchDirectory scratch;
  std::string path = scratch.file("x");
  EXPECT_THAT(read_everything(path), HasSubstr("No such file"));
  EXPECT_THAT(read_everything(scratch.path().string()), HasSubstr("is a directory"));
  write_bytes(path, "");
  EXPECT_THAT(read_everything(path), HasSubstr("is empty"));
  write_bytes(path, "#!/bin/sh\necho hello\n" + std::string(5'000, 'x'));
  EXPECT_THAT(read_everything(path), HasSubstr("is not a run file"));
  write_bytes(path, "PERFILE2" + std::string(5'000, '\0'));
  EXPECT_THAT(read_everything(path), HasSubstr("assay import"));
  std::filesystem::remove(path);
  run_sql_on(path, "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
  EXPECT_THAT(read_everything(path), HasSubstr("SQLite database, but not a run file"));
  EXPECT_THAT(read_everything("/dev/null"), HasSubstr("not a regular file"));
}

TEST(RunDamage, ANewerRunIsRefusedWithBothVersions) {
  ScratchDirectory scratch;
  std::string path = scratch.file("new.assay");
  write_fixture_run(path);
  run_sql_on(path, "PRAGMA user_version = 99");
  EXPECT_THAT(read_everything(path),
              HasSubstr("format version 99; this assay reads up to version 1"));
}

TEST(RunDamage, ATruncatedRunSaysHowMuchIsMissing) {
  ScratchDirectory scratch;
  std::string path = scratch.file("cut.assay");
  write_fixture_run(path);
  std::string bytes = bytes_of(path);
  write_bytes(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(read_everything(path), HasSubstr("truncated"));
}

TEST(RunDamage, ReferencesToNothingAreFound) {
  struct Case {
    const char* sql;
    const char* expected;
  };
  const Case cases[] = {
      {"UPDATE frame SET module = 3 WHERE id = 5", "table frame"},
      {"UPDATE frame SET id = 77 WHERE id = 9", "table frame"},
      {"UPDATE stack SET parent = id WHERE id = 5", "table stack"},
      {"UPDATE stack SET frame = 10 WHERE id = 5", "table stack"},
      {"UPDATE stack SET frame = -1 WHERE id = 5", "table stack"},
      {"UPDATE thread SET process = 2 WHERE id = 1", "table thread"},
      {"UPDATE thread SET id = 4000000000 WHERE id = 5", "table thread"},
      {"UPDATE process SET pid = -4 WHERE id = 1", "table process"},
      {"UPDATE module SET kind = 9 WHERE id = 1", "table module"},
      {"UPDATE mapping SET module = 9", "table mapping"},
      {"UPDATE location SET function = 900 WHERE depth = 1", "table location"},
      {"UPDATE location SET depth = 3 WHERE depth = 1", "table location"},
      {"UPDATE series SET owner = 7", "table series"},
      {"UPDATE point SET series = 1", "a point belongs to no series"},
      {"UPDATE loss SET kind = 200", "table loss"},
      {"DELETE FROM stack WHERE id > 20", "stack that does not exist"},
      {"DELETE FROM thread WHERE id = 5", "does not exist"},
      {"UPDATE sample_block SET count = count + 1", "sample block 1: its totals do not match"},
      {"UPDATE wait_block SET runqueue_ns = 0", "wait block 1: its totals do not match"},
      {"UPDATE wait_block SET process = 9 WHERE id = 2", "wait block 2 belongs to no process"},
      {"UPDATE wait_block SET data = zeroblob(100)", "wait block 1: it is not a zstd frame"},
      {"UPDATE wait_block SET data = ''", "wait block 1: it is not a zstd frame"},
      {"UPDATE wait_block SET data = (SELECT data FROM sample_block)", "another kind of block"},
      {"DROP TABLE wait_block", "no table wait_block"},
      {"DROP TABLE note; CREATE VIEW note AS WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT "
       "x+1 "
       "FROM n) SELECT x AS id, 't' AS topic, '' AS text, '' AS remedy FROM n",
       "no table note"},
      {"ALTER TABLE frame RENAME COLUMN address TO adress", "no such column"},
  };
  ScratchDirectory scratch;
  std::string good = scratch.file("good.assay");
  write_fixture_run(good);
  ASSERT_EQ(read_everything(good), "");
  for (const Case& one : cases) {
    SCOPED_TRACE(one.sql);
    std::string path = scratch.file("bad.assay");
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    run_sql_on(path, one.sql);
    std::string error = read_everything(path);
    EXPECT_THAT(error, HasSubstr(one.expected));
    EXPECT_THAT(error, HasSubstr(path));
  }
}

TEST(RunDamage, GapsOfIdsAreFilled) {
  ScratchDirectory scratch;
  std::string path = scratch.file("gap.assay");
  write_fixture_run(path);
  run_sql_on(path, "DELETE FROM thread WHERE id = 2");
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  ASSERT_EQ((*reader)->contents().threads.size(), kFixtureThreads);
  EXPECT_EQ((*reader)->contents().threads[2].id.value, 2u);
  EXPECT_EQ((*reader)->contents().threads[2].tid, 0);
}

// Every flip must end in an Error or in rows that hold together (read_everything aborts otherwise).
TEST(RunDamage, ThousandsOfFlippedBytesNeverCrash) {
  ScratchDirectory scratch;
  std::string path = scratch.file("f.assay");
  write_fixture_run(path, 1, 30);
  const std::string good = bytes_of(path);
  std::mt19937 random(20240);
  int refused = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string bad = good;
    int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (round % 5 == 0) {  // a run of garbage
      size_t at = random() % bad.size(), length = random() % 64;
      for (size_t i = at; i < std::min(at + length, bad.size()); ++i) {
        bad[i] = static_cast<char>(random());
      }
    }
    write_bytes(path, bad);
    if (!read_everything(path).empty()) ++refused;
  }
  EXPECT_GT(refused, 100);
}

TEST(RunDamage, EveryTruncationIsRefusedOrReadable) {
  ScratchDirectory scratch;
  std::string path = scratch.file("t.assay");
  write_fixture_run(path, 1, 30);
  const std::string good = bytes_of(path);
  std::mt19937 random(99);
  for (int round = 0; round < 300; ++round) {
    write_bytes(path, good.substr(0, random() % good.size()));
    EXPECT_NE(read_everything(path), "");
  }
}

TEST(RunDamage, AnyFlippedByteOfABlockIsFound) {
  ScratchDirectory scratch;
  std::string path = scratch.file("b.assay");
  write_fixture_run(path, 1, 30);
  for (int offset = 0; offset < 200; offset += 3) {
    std::string copy = scratch.file("c.assay");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    auto database = Database::open_unguarded(copy, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database);
    sqlite3_blob* blob = nullptr;
    ASSERT_EQ(sqlite3_blob_open(database->handle(), "main", "wait_block", "data", 1, 1, &blob),
              SQLITE_OK);
    unsigned char byte = 0;
    int at = offset % sqlite3_blob_bytes(blob);
    ASSERT_EQ(sqlite3_blob_read(blob, &byte, 1, at), SQLITE_OK);
    byte ^= 0x10;
    ASSERT_EQ(sqlite3_blob_write(blob, &byte, 1, at), SQLITE_OK);
    sqlite3_blob_close(blob);
    database->close();
    EXPECT_THAT(read_everything(copy), HasSubstr("wait block 1")) << "byte " << at;
  }
}

}  // namespace
}  // namespace assay::run
