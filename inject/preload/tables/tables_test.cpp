#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/preload/channel_writer.h"
#include "inject/preload/exponential.h"
#include "inject/preload/tables/heap_table.h"
#include "inject/preload/tables/live_table.h"
#include "inject/preload/tables/site_table.h"

namespace assay::inject {
namespace {

const void* address(uintptr_t n) {
  return reinterpret_cast<const void*>(0x10000 + n * 16);
}

TEST(LiveTable, HoldsUntilTaken) {
  static LiveTable table;
  ASSERT_TRUE(table.prepare());
  EXPECT_FALSE(table.may_hold(address(1)));
  ASSERT_TRUE(table.insert(address(1), {100, 200, nullptr}));
  EXPECT_TRUE(table.may_hold(address(1)));
  LiveEntry entry;
  EXPECT_FALSE(table.take(address(2), entry));
  ASSERT_TRUE(table.take(address(1), entry));
  EXPECT_EQ(entry.bytes, 100u);
  EXPECT_EQ(entry.rate_bytes, 200u);
  EXPECT_FALSE(table.take(address(1), entry));
  EXPECT_FALSE(table.may_hold(address(1)));
}

TEST(LiveTable, RefusesWhatDoesNotFitAndLosesNothingElse) {
  static LiveTable table;
  ASSERT_TRUE(table.prepare());
  size_t held = 0;
  for (uintptr_t n = 0; n < LiveTable::capacity() * 2; ++n)
    held += table.insert(address(n), {n, 1, nullptr});
  EXPECT_LE(held, LiveTable::capacity());
  EXPECT_GT(held, LiveTable::capacity() / 2);
  size_t taken = 0;
  table.take_all([&](uint64_t, const LiveEntry&) { ++taken; });
  EXPECT_EQ(taken, held);
  EXPECT_EQ(table.entries(), 0u);
}

TEST(LiveTable, AQuarterFullRefusesNothing) {
  static LiveTable table;
  ASSERT_TRUE(table.prepare());
  for (uintptr_t n = 0; n < LiveTable::capacity() / 4; ++n)
    ASSERT_TRUE(table.insert(address(n * 37), {n, 1, nullptr})) << n;
}

TEST(LiveTable, ThreadsInsertAndTakeAtOnce) {
  static LiveTable table;
  ASSERT_TRUE(table.prepare());
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uintptr_t i = 0; i < 20'000; ++i) {
        const void* at = address(t * 1'000'000 + i % 500);
        LiveEntry entry;
        faults += !table.insert(at, {i, t, nullptr});
        faults += !table.may_hold(at);
        faults += !table.take(at, entry) || entry.bytes != i || entry.rate_bytes != t;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(table.entries(), 0u);
}

uint32_t label_now = 0;

TEST(HeapTable, SumsWeightsPerStackAndLabel) {
  ASSERT_TRUE(start_heap_table(512 << 10));
  EXPECT_EQ(heap_table_rate(), uint64_t{512} << 10);
  set_heap_label_source([] { return label_now; });
  uintptr_t pcs[] = {0x1000, 0x2000, 0x3000};
  std::vector<LiveEntry> entries;
  for (uint64_t bytes : {16, 1000, 1 << 20}) {
    for (label_now = 7; label_now <= 8; ++label_now) {
      LiveEntry entry{bytes, 512 << 10, find_site(pcs, 3, true, current_label_id())};
      add_allocation(entry);
      entries.push_back(entry);
    }
  }
  add_free(entries[0]);  // 16 bytes, label 7
  set_heap_label_source(nullptr);
  EXPECT_EQ(current_label_id(), 0u);

  std::map<uint32_t, HeapSite> sites;
  visit_heap_sites(
      [](const HeapSite& site, void* data) {
        if (site.frames == 3 && site.pcs[0] == 0x1000)
          (*static_cast<std::map<uint32_t, HeapSite>*>(data))[site.label] = site;
      },
      &sites);
  ASSERT_EQ(sites.size(), 2u);
  double rate = 512 << 10;
  double all = sample_weight(16, 512 << 10) + sample_weight(1000, 512 << 10) +
               sample_weight(1 << 20, 512 << 10);
  EXPECT_NEAR(sites[7].alloc_objects, all, 1e-6);
  EXPECT_NEAR(sites[8].live_objects, all, 1e-6);
  EXPECT_NEAR(sites[7].live_objects, all - sample_weight(16, 512 << 10), 1e-6);
  EXPECT_NEAR(sites[7].alloc_bytes - sites[7].live_bytes, rate,
              20);  // small blocks stand for one rate each
  EXPECT_EQ(sites[7].alloc_samples, 3u);
  EXPECT_EQ(sites[7].live_samples, 2u);
  EXPECT_EQ(sites[7].live_sampled_bytes, 1000u + (1 << 20));
  EXPECT_TRUE(sites[7].is_complete);
  stop_heap_table();
  EXPECT_EQ(heap_table_rate(), 0u);
}

TEST(HeapTable, TotalsStayRightWhenStacksNoLongerFit) {
  ASSERT_TRUE(start_heap_table(1));
  uint64_t before = heap_totals().alloc_samples;
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uintptr_t i = 0; i < 10'000; ++i) {
        uintptr_t pcs[] = {0xabc000 + i,
                           0xdef000 + t % 2 * 100'000};  // two threads share each stack
        add_allocation({10, 1, find_site(pcs, 2, true, 0)});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  HeapSite totals = heap_totals();
  EXPECT_EQ(totals.alloc_samples - before, 40'000u);
  size_t sites = 0;
  visit_heap_sites([](const HeapSite&, void* data) { ++*static_cast<size_t*>(data); }, &sites);
  EXPECT_LE(sites, kMaxSites + 4);  // as many as may race for the last place, and the rest's own
  EXPECT_GT(sites, kMaxSites / 2);
  stop_heap_table();
}

// A channel in a memfd, and the reader's side of it.
class Channel {
 public:
  static constexpr uint64_t kRing = 64 << 10;
  explicit Channel(uint32_t children = 0)
      : fd_(memfd_create("channel", MFD_CLOEXEC)), bytes_(kBytes + children * kChildChannelBytes) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes_)), 0);
    at_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    fill(header(), kRing);
    header().child_channels = children;
    for (uint32_t i = 0; i < children; ++i) fill(child(i), kChildRingBytes);
  }
  ~Channel() {
    munmap(at_, bytes_);
    close(fd_);
  }
  static void fill(HeapChannelHeader& header, uint64_t ring_bytes) {
    header.magic = kHeapChannelMagic;
    header.version = kHeapChannelVersion;
    header.ring_bytes = ring_bytes;
    header.rate_bytes = 1000;
    header.mode = 1;
  }
  HeapChannelHeader& header() { return *reinterpret_cast<HeapChannelHeader*>(at_); }
  HeapChannelHeader& child(uint32_t i) {
    return *reinterpret_cast<HeapChannelHeader*>(at_ + kBytes + i * kChildChannelBytes);
  }
  int fd() const { return fd_; }

  // Reads what is published; calls each(kind, record).
  template <class Each>
  size_t drain(Each each) {
    size_t records = 0;
    for (;;) {
      uint64_t tail = header().tail;
      char* record = at_ + kHeapChannelHeaderBytes + tail % kRing;
      auto& head = *reinterpret_cast<HeapRecordHeader*>(record);
      uint32_t size = head.size.load(std::memory_order_acquire);
      if (size == 0 || tail == header().head.load(std::memory_order_acquire)) return records;
      if (head.kind != HeapRecordKind::padding) {
        each(head.kind, record);
        ++records;
      }
      std::memset(record + sizeof(uint32_t), 0, size - sizeof(uint32_t));
      head.size.store(0, std::memory_order_relaxed);
      header().tail.store(tail + size, std::memory_order_release);
    }
  }

 private:
  static constexpr size_t kBytes = kHeapChannelHeaderBytes + kRing;
  int fd_;
  size_t bytes_;
  char* at_;
};

AllocSample sample_of(uint64_t n, const uintptr_t* pcs, uint32_t frames) {
  return {n, n * 16, n + 1, 1000, 1, HeapFunction::malloc, true, pcs, frames};
}

TEST(ChannelWriter, RecordsComeOutAsTheyWentIn) {
  Channel channel;
  ChannelWriter writer;
  ASSERT_TRUE(writer.open_fd(channel.fd()));
  EXPECT_EQ(channel.header().pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(writer.wanted_rate(), 1000u);
  uintptr_t pcs[kMaxHeapFrames + 1];
  for (size_t i = 0; i <= kMaxHeapFrames; ++i) pcs[i] = i;
  uint64_t written = 0, seen = 0, wrong = 0;
  for (uint64_t n = 0; n < 5000; ++n) {  // many times around the ring
    written += writer.write_alloc(sample_of(n, pcs, n % (kMaxHeapFrames + 2)));
    written += writer.write_free(n, n, 2);
    seen += channel.drain([&](HeapRecordKind kind, const char* record) {
      if (kind != HeapRecordKind::alloc) return;
      const auto& alloc = *reinterpret_cast<const HeapAllocRecord*>(record);
      wrong += alloc.size != n + 1 || alloc.header.frames > kMaxHeapFrames;
      wrong += (alloc.complete != 0) != (n % (kMaxHeapFrames + 2) <= kMaxHeapFrames);
      for (uint64_t i = 0; i < alloc.header.frames; ++i)
        wrong += std::memcmp(record + sizeof alloc + i * 8, &i, 8) != 0;
    });
  }
  EXPECT_EQ(written, 10'000u);
  EXPECT_EQ(seen, written);
  EXPECT_EQ(wrong, 0u);
  writer.close();
  EXPECT_FALSE(writer.write_free(1, 1, 1));
}

// Records of forked children are readable after they have ended; a child that finds no free channel
// gets an error.
TEST(ChannelWriter, ChildrenTakeChannelsThatOutliveThem) {
  Channel channel(2);
  ChannelWriter writer;
  ASSERT_TRUE(writer.open_fd(channel.fd()));
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    pid_t child = fork();
    if (child == 0) {
      uint32_t parent = writer.owner();
      writer.forget(true);
      bool took = writer.claim_for_child(parent);
      uintptr_t pcs[] = {1, 2};
      if (took) writer.set_ready(1);
      if (took) took = writer.write_alloc(sample_of(7, pcs, 2));
      writer.close();
      _exit(took ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), i < 2 ? 0 : 1) << "there are two";
    children.push_back(child);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    HeapChannelHeader& header = channel.child(i);
    EXPECT_EQ(header.pid, static_cast<uint32_t>(children[i]));
    EXPECT_EQ(header.parent_pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(header.ready, 1u);
    EXPECT_EQ(header.head, sizeof(HeapAllocRecord) + 16);
  }
  EXPECT_EQ(channel.header().head, 0u) << "their parent's is untouched";
  EXPECT_TRUE(writer.write_free(1, 1, 1)) << "and still its own";
  writer.close();
}

TEST(ChannelWriter, AFullRingDropsCountsAndPauses) {
  Channel channel;
  ChannelWriter writer;
  ASSERT_TRUE(writer.open_fd(channel.fd()));
  uintptr_t pcs[50] = {};
  uint64_t written = 0;
  for (uint64_t n = 0; n < 1000; ++n) written += writer.write_alloc(sample_of(n, pcs, 50));
  EXPECT_LT(written, 1000u);
  EXPECT_EQ(channel.header().dropped_records, 1000 - written);
  EXPECT_EQ(writer.wanted_rate(), 0u);
  EXPECT_EQ(channel.drain([](auto, auto) {}), written);
  EXPECT_EQ(writer.wanted_rate(), 1000u);
  writer.close();
}

TEST(ChannelWriter, ThreadsWriteWhileOneReads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "skipped: the reader has a mapping of its own, so ThreadSanitizer does not see that the "
         "ring's tail orders it and the writers";
#endif
  Channel channel;
  ChannelWriter writer;
  ASSERT_TRUE(writer.open_fd(channel.fd()));
  std::atomic<uint64_t> written{0}, running{3};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      uintptr_t pcs[64] = {t, t, t};
      for (uint64_t n = 0; n < 5000; ++n)
        written += writer.write_alloc(sample_of(n, pcs, 3 + n % 60));
      --running;
    });
  }
  uint64_t seen = 0;
  while (running > 0) seen += channel.drain([](auto, auto) {});
  for (auto& thread : threads) thread.join();
  seen += channel.drain([](auto, auto) {});
  EXPECT_EQ(seen, written.load());
  EXPECT_EQ(seen + channel.header().dropped_records, 15'000u);
  writer.close();
}

TEST(ChannelWriter, OpensAndClosesUnderWriters) {
  ChannelWriter writer;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      uintptr_t pcs[10] = {};
      while (!stop) writer.write_alloc(sample_of(1, pcs, 10));
    });
  }
  for (int i = 0; i < 200; ++i) {
    Channel channel;
    ASSERT_TRUE(writer.open_fd(channel.fd()));
    writer.close();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace assay::inject
