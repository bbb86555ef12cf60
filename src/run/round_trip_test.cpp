// What a Writer takes in, a Reader gives back.
#include <algorithm>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/blocks/block_codec.h"
#include "run/reader.h"
#include "run/run_fixture.h"
#include "run/writer.h"

namespace assay::run {
namespace {

auto key(const model::Sample& s) {
  return std::tuple(s.time, s.thread, s.stack, s.weight_ns, s.cpu);
}
auto key(const model::Wait& w) {
  return std::tuple(w.start, w.duration_ns, w.runqueue_ns, w.thread, w.stack, w.flags, w.syscall,
                    w.fd_kind, w.arg, w.waker, w.waker_stack, w.owner);
}

template <class Row>
std::vector<decltype(key(Row()))> keys(const std::vector<Row>& rows) {
  std::vector<decltype(key(Row()))> all;
  for (const Row& row : rows) all.push_back(key(row));
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<model::Sample> all_samples(const Reader& reader, TimeRange range = {}) {
  std::vector<model::Sample> rows;
  auto done = reader.for_each_sample(range, [&](const model::Sample& s) { rows.push_back(s); });
  EXPECT_TRUE(done) << done.error().text();
  return rows;
}
std::vector<model::Wait> all_waits(const Reader& reader, TimeRange range = {}) {
  std::vector<model::Wait> rows;
  auto done = reader.for_each_wait(range, [&](const model::Wait& w) { rows.push_back(w); });
  EXPECT_TRUE(done) << done.error().text();
  return rows;
}

std::unique_ptr<Reader> open_or_die(const std::string& path) {
  auto reader = Reader::open(path);
  EXPECT_TRUE(reader) << reader.error().text();
  return reader ? std::move(*reader) : nullptr;
}

// More blocks than are read without a thread of their own.
void write_many_blocks(const std::string& path) {
  auto writer = *Writer::create(path, fixture_info(), true);
  add_fixture_tables(*writer);
  for (int block = 0; block < 20; ++block) {
    for (int i = 0; i < 100; ++i) {
      TimeNs time = kFixtureBegin + block * kNsPerSecond + i * kNsPerMs;
      writer->add_sample({time, {0}, {1}, 1'000, 0});
    }
    ASSERT_TRUE(writer->flush(kFixtureBegin + (block + 1) * kNsPerSecond));
  }
  model::RunInfo info = fixture_info();
  info.window_end_ns = kFixtureBegin + 20 * kNsPerSecond;
  info.finished = true;
  ASSERT_TRUE(writer->finish(info));
}

TEST(ReaderStreams, ALongOneKeepsItsOrder) {
  ScratchDirectory scratch;
  write_many_blocks(scratch.file("a.assay"));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(*reader->row_count(), 2'000u);
  for (int again = 0; again < 3; ++again) {
    std::vector<model::Sample> rows = all_samples(*reader);
    ASSERT_EQ(rows.size(), 2'000u);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                               [](const auto& a, const auto& b) { return a.time < b.time; }));
  }
}

TEST(ReaderStreams, EndEarlyWhenTold) {
  ScratchDirectory scratch;
  write_many_blocks(scratch.file("a.assay"));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  std::atomic<bool> stop = false;
  TimeRange all;
  all.stop = &stop;
  int rows = 0;
  auto done = reader->for_each_sample(all, [&](const model::Sample&) {
    if (++rows == 750) stop = true;
  });
  EXPECT_FALSE(done);
  EXPECT_GE(rows, 750);
  EXPECT_LE(rows, 850) << "at the end of its block";
}

TEST(ReaderStreams, OfATwinRunBesideTheFirst) {
  ScratchDirectory scratch;
  write_many_blocks(scratch.file("a.assay"));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  auto twin = reader->twin();
  ASSERT_TRUE(twin && *twin);
  EXPECT_EQ(&(*twin)->contents(), &reader->contents());
  size_t seen = 0;
  std::thread other([&] { seen = all_samples(**twin).size(); });
  EXPECT_EQ(all_samples(*reader).size(), 2'000u);
  other.join();
  EXPECT_EQ(seen, 2'000u);
}

TEST(RunRoundTrip, EveryTableComesBack) {
  ScratchDirectory scratch;
  write_fixture_run(scratch.file("a.assay"));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  const Contents& got = reader->contents();
  EXPECT_EQ(got.info.target, "--port 8000");
  EXPECT_EQ(got.info.command_line, "assay record --port 8000");
  EXPECT_EQ(got.info.sample_period_ns, 10'101'010);
  EXPECT_EQ(got.info.window_begin_ns, kFixtureBegin);
  EXPECT_EQ(got.info.window_end_ns, kFixtureBegin + 2 * kNsPerSecond);
  EXPECT_EQ(got.info.end_reason, "time");
  EXPECT_TRUE(got.info.finished);
  ASSERT_EQ(got.processes.size(), 2u);
  EXPECT_EQ(got.processes[1].role, "worker 0");
  EXPECT_EQ(got.processes[0].end_ns, model::kStillRunning);
  EXPECT_EQ(got.processes[1].end_ns, kFixtureBegin + 7);
  ASSERT_EQ(got.threads.size(), kFixtureThreads);
  EXPECT_EQ(got.threads[4].tid, 111);
  EXPECT_EQ(got.threads[4].process.value, 1u);
  EXPECT_EQ(got.threads[4].pool, "pool-*");
  ASSERT_EQ(got.modules.size(), 3u);
  EXPECT_EQ(got.modules[1].build_id, "abcd");
  ASSERT_EQ(got.frames.size(), 10u);
  EXPECT_EQ(got.frames[9].address, 0xffffffff81000000ull);
  ASSERT_EQ(got.stacks.size(), kFixtureStacks + 1);
  EXPECT_EQ(got.stacks[9], (model::StackNode{{4}, {9}}));
  ASSERT_EQ(got.mappings.size(), 1u);
  EXPECT_EQ(got.mappings[0].mapping.file_offset, 0x200u);
  ASSERT_EQ(got.locations.size(), got.frames.size());
  ASSERT_EQ(got.locations[3].size(), 2u);
  EXPECT_EQ(got.locations[3][0].system_name, "_Z5inneri");
  EXPECT_TRUE(got.locations[3][0].inlined);
  EXPECT_EQ(got.locations[3][1].function_line, 30u);
  EXPECT_EQ(got.locations[3][1].line, 40u);
  EXPECT_TRUE(got.locations[5].empty());
  ASSERT_EQ(got.series.size(), 1u);
  EXPECT_EQ(got.series[0].owner, 1u);
  ASSERT_EQ(got.losses.size(), 1u);
  EXPECT_EQ(got.losses[0].count, 17u);
  ASSERT_EQ(got.facts.size(), 1u);
  ASSERT_EQ(got.notes.size(), 1u);
  EXPECT_EQ(got.notes[0].remedy, "ulimit -l unlimited");
  EXPECT_EQ(reader->source_line("server.cc", 12).value(), "  return x * 2;");
  EXPECT_EQ(reader->source_line("server.cc", 13).value(), "");
  ASSERT_EQ(got.data_names.size(), 1u);
  EXPECT_EQ(got.data_names[0].name, "table_mutex");
  EXPECT_EQ(got.data_names[0].address, 0x5000u);
  auto points = reader->points({0});
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 2u);
  EXPECT_EQ((*points)[1].value, 1'000);
}

TEST(RunRoundTrip, EverySampleAndWaitComesBack) {
  ScratchDirectory scratch;
  write_fixture_run(scratch.file("a.assay"), 3, 200);
  FixtureRows expected;
  for (int second = 0; second < 3; ++second) {
    FixtureRows rows = fixture_rows(second, 200, 1);
    expected.samples.insert(expected.samples.end(), rows.samples.begin(), rows.samples.end());
    expected.waits.insert(expected.waits.end(), rows.waits.begin(), rows.waits.end());
  }
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(keys(all_samples(*reader)), keys(expected.samples));
  EXPECT_EQ(keys(all_waits(*reader)), keys(expected.waits));
}

TEST(RunRoundTrip, WaitsOfOneThreadComeInTimeOrder) {
  ScratchDirectory scratch;
  write_fixture_run(scratch.file("a.assay"), 3, 50);
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  std::vector<TimeNs> last(kFixtureThreads, INT64_MIN);
  for (const model::Wait& wait : all_waits(*reader)) {
    EXPECT_GE(wait.start, last[wait.thread.value]);
    last[wait.thread.value] = wait.start;
  }
}

TEST(RunRoundTrip, RangesSelectByTimeAndByOverlap) {
  ScratchDirectory scratch;
  write_fixture_run(scratch.file("a.assay"), 3, 200);
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  TimeRange range{kFixtureBegin + kNsPerSecond + 1'000'000,
                  kFixtureBegin + kNsPerSecond + 3'000'000};
  auto samples = all_samples(*reader);
  std::erase_if(samples, [&](const model::Sample& s) {
    return s.time < range.begin_ns || s.time >= range.end_ns;
  });
  EXPECT_FALSE(samples.empty());
  EXPECT_EQ(keys(all_samples(*reader, range)), keys(samples));
  auto waits = all_waits(*reader);
  std::erase_if(waits, [&](const model::Wait& w) {
    bool overlaps = w.start < range.end_ns && w.start + w.duration_ns > range.begin_ns;
    bool point = w.duration_ns == 0 && w.start == range.begin_ns;
    return !overlaps && !point;
  });
  EXPECT_FALSE(waits.empty());
  EXPECT_EQ(keys(all_waits(*reader, range)), keys(waits));
}

TEST(RunRoundTrip, ReplacingKeepsTheLast) {
  ScratchDirectory scratch;
  auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  ASSERT_TRUE((*writer)->flush(kFixtureBegin + 1));
  (*writer)->add_fact({"host", "kernel", "6.2"});
  (*writer)->add_note({"rings", "small rings", "another remedy"});
  model::Thread thread;
  thread.id = {2};
  thread.name = "renamed";
  (*writer)->put_thread(thread);
  (*writer)->put_locations({3}, std::vector<model::Location>{{"better()", "", "", 0, 0, false}});
  ASSERT_TRUE((*writer)->finish(fixture_info()));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->contents().facts.size(), 1u);
  EXPECT_EQ(reader->contents().facts[0].value, "6.2");
  EXPECT_EQ(reader->contents().notes.size(), 1u);
  EXPECT_EQ(reader->contents().threads[2].name, "renamed");
  ASSERT_EQ(reader->contents().locations[3].size(), 1u);
  EXPECT_EQ(reader->contents().locations[3][0].function, "better()");
}

TEST(RunRoundTrip, HostileTextAndExtremeNumbersSurvive) {
  ScratchDirectory scratch;
  auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  std::string hostile("a\0b\xff\n';DROP TABLE thread;--", 26);
  model::Thread thread;
  thread.id = {0};
  thread.name = hostile;
  (*writer)->put_thread(thread);
  (*writer)->put_locations({5}, std::vector<model::Location>{{hostile, "", hostile, 1, 1, false}});
  model::Wait wait;
  wait.start = INT64_MIN + 5;
  wait.duration_ns = INT64_MAX;
  wait.arg = UINT64_MAX;
  wait.flags = 0xffff;
  wait.stack = {kFixtureStacks};
  (*writer)->add_wait(wait);
  model::Sample sample{INT64_MAX, {1}, {0}, INT64_MIN, 0xffff};
  (*writer)->add_sample(sample);
  ASSERT_TRUE((*writer)->finish(fixture_info()));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->contents().threads[0].name, hostile);
  EXPECT_EQ(reader->contents().locations[5][0].file, hostile);
  auto waits = all_waits(*reader);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(key(waits[0]), key(wait));
}

// Blocks of the first version had no waker stacks and no lock owners.
TEST(BlockDecoder, ReadsBlocksThatEndWithTheWaker) {
  model::Wait wait;
  wait.start = kFixtureBegin;
  wait.duration_ns = 5;
  wait.waker = {1};
  wait.owner = {2};
  wait.waker_stack = {3};
  BlockEncoder encoder;
  BlockDecoder decoder;
  auto blob = encoder.encode(std::span<const model::Wait>(&wait, 1));
  ASSERT_TRUE(blob);
  auto raw = decoder.decompress(*blob);
  ASSERT_TRUE(raw);
  ByteReader in(*raw);
  ByteWriter old;
  for (int i = 0; i < 2; ++i) old.varint(in.varint());  // kind, rows
  old.signed_varint(signed_varint(in));
  constexpr size_t kOldColumns = 9;
  std::vector<uint64_t> sizes(in.varint());
  for (uint64_t& size : sizes) size = in.varint();
  ASSERT_GT(sizes.size(), kOldColumns);
  old.varint(kOldColumns);
  for (size_t i = 0; i < kOldColumns; ++i) old.varint(sizes[i]);
  for (size_t i = 0; i < kOldColumns; ++i) old.append(in.octets(sizes[i]));
  std::vector<model::Wait> rows;
  ASSERT_TRUE(BlockDecoder::decode_raw(old.bytes(), rows));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].waker, model::ThreadId{1});
  EXPECT_EQ(rows[0].owner, model::Wait::kNoOwner);
  EXPECT_EQ(rows[0].waker_stack, model::StackId{});
}

TEST(Writer, LeavesOutWhatRefersToNothingAndSaysSo) {
  ScratchDirectory scratch;
  auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  (*writer)->add_sample({kFixtureBegin, {99}, {1}, 1, 0});
  (*writer)->add_sample({kFixtureBegin, {1}, {kFixtureStacks + 1}, 1, 0});
  model::Wait backwards;
  backwards.start = kFixtureBegin;
  backwards.duration_ns = -1;
  (*writer)->add_wait(backwards);
  model::Wait good;
  good.start = kFixtureBegin;
  good.waker = {99};  // unknown: the wait stays, its waker does not
  good.owner = {98};
  good.waker_stack = {kFixtureStacks + 1};
  (*writer)->add_wait(good);
  ASSERT_TRUE((*writer)->finish(fixture_info()));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_TRUE(all_samples(*reader).empty());
  auto waits = all_waits(*reader);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].waker, model::Wait::kNoWaker);
  EXPECT_EQ(waits[0].owner, model::Wait::kNoOwner);
  EXPECT_EQ(waits[0].waker_stack, model::StackId{});
  const Contents& got = reader->contents();
  ASSERT_EQ(got.losses.size(), 2u);
  EXPECT_EQ(got.losses[1].kind, model::LossKind::malformed);
  EXPECT_EQ(got.losses[1].count, 3u);
  EXPECT_EQ(got.notes.size(), 2u);
}

TEST(Writer, RefusesIdsThatDoNotAscend) {
  ScratchDirectory scratch;
  auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  ASSERT_TRUE((*writer)->flush(1));
  (*writer)->add_frame({12}, {{1}, 5});
  auto flushed = (*writer)->flush(2);
  ASSERT_FALSE(flushed);
  EXPECT_THAT(flushed.error().what, testing::HasSubstr("frame 12 was added where 10 was due"));
  EXPECT_FALSE((*writer)->flush(3));
  EXPECT_FALSE((*writer)->finish(fixture_info()));
  // The failed writer still exists, and does not stand in the way.
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->contents().frames.size(), 10u);
  EXPECT_FALSE(reader->contents().info.finished);
}

TEST(Writer, ReplacesOnlyWhenToldAndOnlyFiles) {
  ScratchDirectory scratch;
  std::string path = scratch.file("a.assay");
  write_fixture_run(path);
  auto again = Writer::create(path, fixture_info(), false);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text(), testing::HasSubstr("exists already"));
  EXPECT_TRUE(Writer::create(path, fixture_info(), true));
  EXPECT_FALSE(Writer::create(scratch.path().string(), fixture_info(), true));
  EXPECT_FALSE(Writer::create("/dev/null", fixture_info(), true));
  EXPECT_FALSE(Writer::create(scratch.file("no/such/dir.assay"), fixture_info(), true));
}

TEST(Writer, ManyThreadsMayAddWhileOneFlushes) {
  ScratchDirectory scratch;
  auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  std::vector<std::thread> adders;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    adders.emplace_back([&, thread] {
      for (int i = 0; i < 5'000; ++i) {
        model::Wait wait;
        wait.start = kFixtureBegin + i * 1'000;
        wait.duration_ns = 10;
        wait.thread = {thread};
        (*writer)->add_wait(wait);
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE((*writer)->flush(kFixtureBegin + i));
  for (std::thread& adder : adders) adder.join();
  ASSERT_TRUE((*writer)->finish(fixture_info()));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(all_waits(*reader).size(), 20'000u);
}

std::vector<std::string> files_in(const ScratchDirectory& scratch) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
    names.push_back(entry.path().filename());
  }
  return names;
}

TEST(Writer, LeavesOneFileBehind) {
  ScratchDirectory scratch;
  write_fixture_run(scratch.file("a.assay"));
  EXPECT_THAT(files_in(scratch), testing::ElementsAre("a.assay"));
}

TEST(Writer, DroppedUnfinishedLeavesOneReadableFileBehind) {
  ScratchDirectory scratch;
  {
    auto writer = Writer::create(scratch.file("a.assay"), fixture_info(), false);
    ASSERT_TRUE(writer);
    add_fixture_tables(**writer);
    ASSERT_TRUE((*writer)->flush(kFixtureBegin + 5));
    (*writer)->add_wait({});
  }
  EXPECT_THAT(files_in(scratch), testing::ElementsAre("a.assay"));
  auto reader = open_or_die(scratch.file("a.assay"));
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->contents().info.window_end_ns, kFixtureBegin + 5);
  EXPECT_FALSE(reader->contents().info.finished);
}

}  // namespace
}  // namespace assay::run
