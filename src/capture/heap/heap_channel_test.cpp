#include "capture/heap/heap_channel.h"

#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/heap/fake_heap_writer.h"

namespace assay::capture {
namespace {

struct Seen {
  HeapRecord record;
  std::vector<uint64_t> pcs;
};

std::vector<Seen> drain(HeapRing& ring, size_t most = 1'000'000) {
  std::vector<Seen> seen;
  ring.drain(most, [&](const HeapRecord& record) {
    seen.push_back({record, std::vector(record.pcs.begin(), record.pcs.end())});
  });
  return seen;
}

TEST(HeapRing, HandsOverWhatWasPublished) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  ASSERT_TRUE(writer.alloc(10, 0x1000, 64, {1, 2, 3}, 4096, 2));
  ASSERT_TRUE(writer.free(20, 0x1000));
  auto seen = drain(ring);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_FALSE(seen[0].record.is_free);
  EXPECT_EQ(seen[0].record.time, 10);
  EXPECT_EQ(seen[0].record.address, 0x1000u);
  EXPECT_EQ(seen[0].record.size_bytes, 64u);
  EXPECT_EQ(seen[0].record.rate_bytes, 4096u);
  EXPECT_EQ(seen[0].record.function, model::HeapFunction::realloc);
  EXPECT_TRUE(seen[0].record.complete);
  EXPECT_EQ(seen[0].pcs, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(seen[1].record.is_free);
  EXPECT_EQ(seen[1].record.time, 20);
  EXPECT_TRUE(drain(ring).empty());
  EXPECT_EQ(writer.header().tail.load(), writer.header().head.load());
}

TEST(HeapRing, GoesRoundAndRoundWithoutLosingOrder) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  uint64_t next = 0, expected = 0;
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 37; ++i) {
      std::vector<uint64_t> pcs(next % 40, next);
      if (!writer.alloc(next, next, 8, pcs)) break;
      ++next;
    }
    for (const Seen& one : drain(ring)) {
      ASSERT_EQ(one.record.address, expected);
      ASSERT_EQ(one.pcs.size(), expected % 40);
      ++expected;
    }
  }
  EXPECT_EQ(next, expected);
  EXPECT_GT(next, 10'000u);
  EXPECT_EQ(ring.damaged(), 0u);
}

TEST(HeapRing, AFullRingDropsAndCounts) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  uint64_t written = 0;
  while (writer.free(1, written)) ++written;
  EXPECT_EQ(writer.header().dropped_records.load(), 1u);
  EXPECT_EQ(drain(ring).size(), written);
  EXPECT_TRUE(writer.free(2, 0));
  EXPECT_EQ(drain(ring).size(), 1u);
}

TEST(HeapRing, WaitsForARecordThatIsBeingWritten) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  writer.free(1, 1);
  auto* first = reinterpret_cast<inject::HeapRecordHeader*>(writer.ring());
  uint32_t size = first->size.exchange(0);
  writer.free(2, 2);
  EXPECT_TRUE(drain(ring).empty());
  first->size.store(size);
  EXPECT_EQ(drain(ring).size(), 2u);
}

TEST(HeapRing, NonsenseIsSkippedAndCounted) {
  for (uint32_t size : {4u, 12u, 7u, 0xffffffffu, 65'536u + 8}) {
    fake::HeapWriter writer;
    HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
    writer.free(1, 1);
    reinterpret_cast<inject::HeapRecordHeader*>(writer.ring())->size.store(size);
    EXPECT_TRUE(drain(ring).empty()) << size;
    EXPECT_EQ(ring.damaged(), 1u) << size;
    writer.free(2, 2);
    EXPECT_EQ(drain(ring).size(), 1u) << "it goes on after it";
  }
}

TEST(HeapRing, MoreFramesThanTheRecordHoldsAreRefused) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  writer.alloc(1, 1, 8, {1, 2});
  reinterpret_cast<inject::HeapRecordHeader*>(writer.ring())->frames = 60'000;
  EXPECT_TRUE(drain(ring).empty());
  EXPECT_EQ(ring.damaged(), 1u);
}

TEST(HeapRing, AHeadBeyondTheRingStartsAnew) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  writer.free(1, 1);
  writer.header().head.store(uint64_t{1} << 40);
  EXPECT_TRUE(drain(ring).empty());
  EXPECT_EQ(ring.damaged(), 1u);
  writer.free(2, 2);
  EXPECT_EQ(drain(ring).size(), 1u);
}

TEST(HeapChannel, CannotBeShrunkByTheTarget) {
  UniqueFd fd(memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  int other = dup(fd.get());
  auto channel = HeapChannel::create_in(std::move(fd), 1 << 20, 4096);
  ASSERT_TRUE(channel) << channel.error().what;
  EXPECT_NE(ftruncate(other, 0), 0);
  EXPECT_FALSE((*channel)->ready());
  EXPECT_EQ((*channel)->problem(), HeapProblem::none);
  EXPECT_EQ((*channel)->drain([](const HeapRecord&) {}), 0u);
  close(other);
}

TEST(HeapChannel, ChildrensChannelsAreReadAndGivenBack) {
  UniqueFd fd(memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  constexpr uint64_t kRing = 1 << 20;
  UniqueFd targets(dup(fd.get()));
  auto channel = HeapChannel::create_in(std::move(fd), kRing, 4096);
  ASSERT_TRUE(channel) << channel.error().what;
  EXPECT_TRUE((*channel)->children().empty());

  // As a child does: the third of them, with one record.
  constexpr uint64_t kThird =
      inject::kHeapChannelHeaderBytes + kRing + 2 * inject::kChildChannelBytes;
  auto* at =
      static_cast<std::byte*>(mmap(nullptr, inject::kChildChannelBytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED, targets.get(), static_cast<off_t>(kThird)));
  ASSERT_NE(at, MAP_FAILED);
  auto& header = *reinterpret_cast<inject::HeapChannelHeader*>(at);
  EXPECT_EQ(header.mode, static_cast<uint32_t>(inject::HeapMode::sampling));
  EXPECT_EQ(header.rate_bytes, 4096u);
  fake::HeapWriter written;
  ASSERT_TRUE(written.alloc(10, 0x1000, 64, {1, 2, 3}));
  std::memcpy(at + inject::kHeapChannelHeaderBytes, written.ring(), inject::kChildRingBytes);
  header.head = written.header().head.load();
  header.pid = 4711;
  header.parent_pid = 4242;
  EXPECT_TRUE((*channel)->children().empty()) << "it is not ready yet";
  header.ready = 1;

  auto children = (*channel)->children();
  ASSERT_EQ(children.size(), 1u);
  EXPECT_EQ(children[0].index, 2u);
  EXPECT_EQ(children[0].pid, 4711);
  EXPECT_EQ(children[0].parent, 4242);
  {
    auto child = (*channel)->open_child(2);
    ASSERT_TRUE(child) << child.error().what;
    EXPECT_EQ((*child)->drain([](const HeapRecord& record) { EXPECT_EQ(record.time, 10); }), 1u);
  }
  (*channel)->give_back(2);
  EXPECT_TRUE((*channel)->children().empty());
  EXPECT_EQ(header.pid, 0u) << "another may take it";
  EXPECT_EQ(header.head, 0u);
  EXPECT_EQ(header.mode, static_cast<uint32_t>(inject::HeapMode::sampling));
  EXPECT_FALSE((*channel)->open_child(HeapChannel::kChildChannels));
  munmap(at, inject::kChildChannelBytes);
}

TEST(HeapChannel, AFileThatIsNoneIsRefused) {
  std::string path = testing::TempDir() + "no_channel";
  int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  EXPECT_FALSE(HeapChannel::open(path)) << "empty";
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  EXPECT_FALSE(HeapChannel::open(path)) << "no magic";
  close(fd);
  unlink(path.c_str());
  EXPECT_FALSE(HeapChannel::open(path)) << "missing";
}

}  // namespace
}  // namespace assay::capture
