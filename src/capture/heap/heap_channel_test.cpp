#include "capture/heap/heap_channel.h"

#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/heap/testing/fake_heap_writer.h"

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

// What a target may write into the header after it was opened is not believed.
class OpenChannel : public ::testing::Test {
 protected:
  static constexpr uint64_t kRing = 1 << 20;

  OpenChannel() {
    UniqueFd fd(memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC));
    targets_ = UniqueFd(dup(fd.get()));
    auto channel = HeapChannel::create_in(std::move(fd), kRing, 4096);
    if (!channel) throw std::runtime_error(channel.error().what);
    channel_ = std::move(*channel);
    at_ = static_cast<std::byte*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, targets_.get(), 0));
  }
  ~OpenChannel() override { munmap(at_, kBytes); }
  inject::HeapChannelHeader& header() { return *reinterpret_cast<inject::HeapChannelHeader*>(at_); }
  inject::HeapChannelHeader& child(uint32_t index) {
    return *reinterpret_cast<inject::HeapChannelHeader*>(
        at_ + inject::kHeapChannelHeaderBytes + kRing + index * inject::kChildChannelBytes);
  }

  static constexpr uint64_t kBytes = inject::kHeapChannelHeaderBytes + kRing +
                                     HeapChannel::kChildChannels * inject::kChildChannelBytes;
  UniqueFd targets_;
  std::unique_ptr<HeapChannel> channel_;
  std::byte* at_ = nullptr;
};

TEST_F(OpenChannel, CommandsGoThroughTheMode) {
  auto mode = [&] { return static_cast<inject::HeapMode>(header().mode.load()); };
  EXPECT_EQ(mode(), inject::HeapMode::off) << "nothing is sampled before it is asked for";
  channel_->start_sampling();
  EXPECT_EQ(mode(), inject::HeapMode::sampling);
  channel_->stop_sampling();
  EXPECT_EQ(mode(), inject::HeapMode::detached);
  channel_->start_sampling();
  channel_.reset();
  EXPECT_EQ(mode(), inject::HeapMode::detached) << "a ring without a reader ends the sampling";
}

TEST_F(OpenChannel, TellsWhatTheTargetSaysOfItself) {
  header().ready = 1;
  header().hooked_slots = 12;
  header().dropped_records = 5;
  header().dropped_live = 3;
  EXPECT_TRUE(channel_->ready());
  EXPECT_EQ(channel_->hooked_slots(), 12u);
  HeapChannelLosses losses = channel_->losses();
  losses += losses;
  EXPECT_EQ(losses.dropped, 10u);
  EXPECT_EQ(losses.dropped_live, 6u);
  EXPECT_EQ(losses.damaged, 0u);
  for (auto [told, problem] : {std::pair{1U, HeapProblem::static_allocator},
                               {2U, HeapProblem::no_memory},
                               {3U, HeapProblem::version},
                               {4U, HeapProblem::other},
                               {~0U, HeapProblem::other}}) {
    header().problem = told;
    EXPECT_EQ(channel_->problem(), problem) << told;
  }
  header().ready = 2;
  EXPECT_FALSE(channel_->ready()) << "1 is the only yes";
}

TEST_F(OpenChannel, AHeaderThatIsOverwrittenLeadsNowhere) {
  header().child_channels = ~0U;
  header().ring_bytes = ~uint64_t{0};
  header().magic = 0;
  EXPECT_TRUE(channel_->children().empty());
  EXPECT_FALSE(channel_->open_child(HeapChannel::kChildChannels)) << "as many as there is room for";
  channel_->give_back(~0U);  // there is no such one: nothing happens
  header().head = 24;
  EXPECT_EQ(channel_->drain([](const HeapRecord&) {}), 0u) << "reserved and never written";
  header().head = uint64_t{1} << 50;
  EXPECT_EQ(channel_->drain([](const HeapRecord&) {}), 0u);
  EXPECT_EQ(channel_->losses().damaged, 1u);
  child(3).ready = 1;
  child(3).pid = ~0U;
  auto children = channel_->children();
  ASSERT_EQ(children.size(), 1u);
  EXPECT_EQ(children[0].pid, -1) << "for kinship.h to refuse";
  child(3).magic = 1;
  EXPECT_FALSE(channel_->open_child(3)) << "no channel any more";
}

TEST_F(OpenChannel, OnlyAFreshRateReachesChildrenThatComeLater) {
  header().rate_bytes = 100;
  channel_->give_back(5);
  EXPECT_EQ(child(5).rate_bytes, 100u);
  EXPECT_EQ(child(6).rate_bytes, 4096u);
}

TEST(HeapChannel, SizesAreBroughtIntoTheirLimits) {
  for (auto [asked, made] : {std::pair{uint64_t{1}, uint64_t{64} << 10},
                             {uint64_t{100} << 10, uint64_t{64} << 10},
                             {uint64_t{1} << 20, uint64_t{1} << 20}}) {
    UniqueFd fd(memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC));
    ASSERT_TRUE(HeapChannel::prepare(fd.get(), asked, 0));
    inject::HeapChannelHeader header{};
    ASSERT_EQ(pread(fd.get(), &header, sizeof header, 0), ssize_t{sizeof header});
    EXPECT_EQ(header.ring_bytes, made) << "a power of two";
    EXPECT_EQ(header.rate_bytes, 1u) << "a rate of 0 would divide by it";
    EXPECT_EQ(header.child_channels, HeapChannel::kChildChannels);
    int seals = fcntl(fd.get(), F_GET_SEALS);
    EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
  }
  UniqueFd unsealable(memfd_create("test", MFD_CLOEXEC));
  EXPECT_FALSE(HeapChannel::prepare(unsealable.get(), 1 << 20, 1));
}

TEST(HeapChannel, AnotherVersionOrAnImpossibleRingIsRefused) {
  auto opened = [](uint32_t version, uint64_t ring_bytes) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
    inject::HeapChannelHeader header{};
    header.magic = inject::kHeapChannelMagic;
    header.version = version;
    header.ring_bytes = ring_bytes;
    EXPECT_EQ(ftruncate(fd.get(), 4096 + (128 << 10)), 0);
    EXPECT_EQ(pwrite(fd.get(), &header, sizeof header, 0), ssize_t{sizeof header});
    return HeapChannel::adopt(std::move(fd), "it").has_value();
  };
  EXPECT_TRUE(opened(inject::kHeapChannelVersion, 64 << 10));
  EXPECT_TRUE(opened(inject::kHeapChannelVersion, 128 << 10));
  EXPECT_FALSE(opened(inject::kHeapChannelVersion + 1, 64 << 10));
  EXPECT_FALSE(opened(inject::kHeapChannelVersion, 256 << 10)) << "larger than the file";
  EXPECT_FALSE(opened(inject::kHeapChannelVersion, (64 << 10) + 8)) << "no power of two";
  EXPECT_FALSE(opened(inject::kHeapChannelVersion, 4096)) << "too small";
  EXPECT_FALSE(opened(inject::kHeapChannelVersion, 0));
}

TEST(HeapRing, ReadsNoMoreThanIsAskedForAtOnce) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(writer.free(1, i));
  EXPECT_EQ(drain(ring, 4).size(), 4u);
  EXPECT_EQ(ring.pending_bytes(), 6 * sizeof(inject::HeapFreeRecord));
  EXPECT_EQ(drain(ring, 100).size(), 6u);
  EXPECT_EQ(ring.pending_bytes(), 0u);
}

TEST(HeapRing, ThreadsAndFunctionsThatCannotBeAreCounted) {
  auto first = [](fake::HeapWriter& writer) {
    return reinterpret_cast<inject::HeapAllocRecord*>(writer.ring());
  };
  for (uint32_t tid : {0U, (1U << 22) + 1, ~0U}) {
    fake::HeapWriter writer;
    HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
    writer.alloc(1, 1, 8, {1});
    first(writer)->tid = tid;
    EXPECT_TRUE(drain(ring).empty()) << tid;
    EXPECT_EQ(ring.damaged(), 1u) << tid;
  }
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  writer.alloc(1, 1, 8, {1}, 4096, static_cast<uint16_t>(model::kHeapFunctionCount));
  EXPECT_TRUE(drain(ring).empty());
  EXPECT_EQ(ring.damaged(), 1u);
  writer.alloc(1, 2, 8, {1}, 4096, static_cast<uint16_t>(model::kHeapFunctionCount - 1));
  EXPECT_EQ(drain(ring).size(), 1u);
}

}  // namespace
}  // namespace assay::capture
