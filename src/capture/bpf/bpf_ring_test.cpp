// BpfRing over plain memory that the test writes in the kernel's place, well and badly.
#include "capture/bpf/bpf_ring.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace assay::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BpfRingTest : public ::testing::Test {
 protected:
  static constexpr size_t kData = 4096;

  BpfRingTest() {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t whole = 2 * page_ + 2 * kData;
    EXPECT_EQ(ftruncate(memory_.get(), static_cast<off_t>(whole)), 0);
    at_ = static_cast<std::byte*>(
        mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0));
    auto ring = BpfRing::map(memory_.get(), kData);
    EXPECT_TRUE(ring);
    ring_ = std::move(*ring);
  }
  ~BpfRingTest() override { munmap(at_, 2 * page_ + 2 * kData); }

  uint64_t& consumed() { return *reinterpret_cast<uint64_t*>(at_); }
  uint64_t& produced() { return *reinterpret_cast<uint64_t*>(at_ + page_); }
  // The kernel maps its data twice in a row; here it is written twice.
  void poke(uint64_t position, const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      size_t offset = (position + i) % kData;
      auto value = static_cast<const std::byte*>(bytes)[i];
      at_[2 * page_ + offset] = at_[2 * page_ + kData + offset] = value;
    }
  }
  void write(const std::string& text, uint32_t flags = 0) {
    uint32_t header[2] = {static_cast<uint32_t>(text.size()) | flags, 0};
    poke(produced(), header, sizeof header);
    poke(produced() + sizeof header, text.data(), text.size());
    produced() += (sizeof header + text.size() + 7) / 8 * 8;
  }
  bool drain() {
    seen_.clear();
    return ring_->drain([this](std::span<const std::byte> record) {
      seen_.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
    });
  }

  size_t page_ = 0;
  UniqueFd memory_{memfd_create("ring", MFD_CLOEXEC)};
  std::byte* at_ = nullptr;
  std::unique_ptr<BpfRing> ring_;
  std::vector<std::string> seen_;
};

TEST_F(BpfRingTest, RecordsComeOnceInTheirOrder) {
  write("first");
  write("");
  write("third one");
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, ElementsAre("first", "", "third one"));
  EXPECT_EQ(consumed(), produced()) << "the space is the kernel's again";
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(BpfRingTest, ADiscardedRecordIsSkippedOneBeingWrittenIsWaitedFor) {
  write("given up", BPF_RINGBUF_DISCARD_BIT);
  write("whole");
  uint64_t busy = produced();
  write("half", BPF_RINGBUF_BUSY_BIT);
  write("behind it");
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, ElementsAre("whole"));
  EXPECT_EQ(consumed(), busy);
  uint32_t done = 4;
  poke(busy, &done, sizeof done);
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, ElementsAre("half", "behind it"));
}

TEST_F(BpfRingTest, ARecordMayLieAcrossTheEnd) {
  consumed() = produced() = kData - 16;
  std::string text(100, 'x');
  write(text);
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, ElementsAre(text));
}

TEST_F(BpfRingTest, ALengthThatCannotBeRightEmptiesTheRing) {
  write("good");
  uint64_t bad = produced();
  write("bad");
  write("never seen");
  uint32_t length = 0x3fffffff;
  poke(bad, &length, sizeof length);
  EXPECT_FALSE(drain());
  EXPECT_THAT(seen_, ElementsAre("good"));
  EXPECT_EQ(consumed(), produced());
  write("afterwards");
  EXPECT_TRUE(drain());
  EXPECT_THAT(seen_, ElementsAre("afterwards"));
}

TEST_F(BpfRingTest, AnEndBeyondTheRingIsNotFollowed) {
  produced() = 10 * kData;
  EXPECT_FALSE(drain());
  EXPECT_THAT(seen_, IsEmpty());
  EXPECT_EQ(consumed(), produced());
  produced() = consumed() - 8;  // it went backwards
  EXPECT_FALSE(drain());
}

TEST_F(BpfRingTest, WhateverLiesThereNoRecordReachesBeyondIt) {
  constexpr unsigned kSeed = 5, kTries = 2000;
  SCOPED_TRACE("seed 5, 2000 tries");
  std::mt19937 random(kSeed);
  for (unsigned i = 0; i < kTries; ++i) {
    for (size_t at = 0; at < kData; at += 8) {
      // Mostly lengths that could be, with flags now and then.
      uint32_t words[2] = {static_cast<uint32_t>(random() % 4 ? random() % 200 : random()), 0};
      poke(at, words, sizeof words);
    }
    consumed() = (random() % 100) * 8;
    produced() = consumed() + (random() % (kData / 8 + 1)) * 8;
    uint64_t room = produced() - consumed();
    uint64_t taken = 0;
    ring_->drain([&](std::span<const std::byte> record) { taken += record.size() + 8; });
    ASSERT_LE(taken, room) << "try " << i;
    ASSERT_LE(consumed(), produced());
  }
}

}  // namespace
}  // namespace assay::capture
