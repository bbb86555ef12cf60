// libassay_heap.so preloaded: what it samples agrees with what programs of known allocation did.
//
// Confidence: an estimate is a sum of independent terms of known variance and known largest value,
// so Bernstein's inequality bounds how far it can be off, also where only a few samples are
// expected. With kDoubt = 14 a right sampler fails a comparison with probability below 2 e^-14
// = 1.7e-6; there are under 150 here.
#include <cmath>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/inject_heap/channel_file.h"
#include "tests/inject_heap/run_program.h"

namespace assay::inject {
namespace {

constexpr double kDoubt = 14;
constexpr uint64_t kRate = 64 << 10;  // denser than the default: short programs, many samples

struct Estimate {
  double value = 0;
  size_t samples = 0;
  void add(double amount, double share) {
    value += amount / share;
    ++samples;
  }
};

// An object of s bytes is sampled with probability p and then counts a / p, where a is 1 or s. That
// adds a²(1 - p)/p to the variance, and (1 - p)/p is at most rate / s: `rate` times the sum of 1 /
// s bounds the variance of objects, `rate` times the bytes that of bytes. Taken from the truth, not
// from what happened to be sampled.
::testing::AssertionResult agrees(const Estimate& found, double truth, double variance,
                                  double largest) {
  double skew = kDoubt / 3 * largest;
  double allowed = skew + std::sqrt(skew * skew + 2 * kDoubt * variance);
  bool good = std::abs(found.value - truth) <= allowed;
  auto result = good ? ::testing::AssertionSuccess() : ::testing::AssertionFailure();
  return result << found.value << " from " << found.samples << " samples, truly " << truth
                << " within " << allowed;
}

struct SiteEstimate {
  Estimate objects, bytes, live_objects, live_bytes;
};

bool is_in(const AllocSeen& alloc, const SiteTruth& site) {
  return !alloc.pcs.empty() && alloc.pcs[0] > site.begin && alloc.pcs[0] <= site.end;
}

SiteEstimate estimate(const HeapSeen& seen, const SiteTruth& site) {
  SiteEstimate out;
  for (const auto& alloc : seen.allocs) {
    if (!is_in(alloc, site)) continue;
    out.objects.add(1, alloc.share());
    out.bytes.add(static_cast<double>(alloc.bytes), alloc.share());
  }
  for (const auto& [address, alloc] : seen.live) {
    if (!is_in(alloc, site)) continue;
    out.live_objects.add(1, alloc.share());
    out.live_bytes.add(static_cast<double>(alloc.bytes), alloc.share());
  }
  return out;
}

void expect_agreement(const HeapSeen& seen, const SiteTruth& site) {
  SiteEstimate found = estimate(seen, site);
  SCOPED_TRACE(site.name);
  double rate = 1;
  for (const auto& alloc : seen.allocs)
    rate = std::max(rate, static_cast<double>(alloc.rate_bytes));
  auto number = [](uint64_t n) { return static_cast<double>(n); };
  double one = 1 + rate / site.smallest,
         block = rate + site.largest;  // the most that a sample adds
  EXPECT_TRUE(agrees(found.objects, number(site.objects), rate * site.inverse, one));
  EXPECT_TRUE(agrees(found.bytes, number(site.bytes), rate * number(site.bytes), block));
  EXPECT_TRUE(agrees(found.live_objects, number(site.live_objects), rate * site.live_inverse,
                     site.live_objects ? one : 0));
  EXPECT_TRUE(agrees(found.live_bytes, number(site.live_bytes), rate * number(site.live_bytes),
                     site.live_objects ? block : 0));
}

class Preload : public ::testing::Test {
 protected:
  ~Preload() override { std::filesystem::remove_all(folder_); }

  Finished run(std::vector<std::string> argv, const std::string& channel) {
    argv.insert(argv.begin(), HEAP_PROGRAM);
    Finished finished =
        run_program(argv, {"LD_PRELOAD=" HEAP_LIBRARY, "ASSAY_HEAP_CHANNEL=" + channel});
    EXPECT_EQ(finished.status, 0) << finished.out;
    return finished;
  }
  void expect_sound(const HeapSeen& seen) {
    EXPECT_EQ(seen.bad_records, 0u);
    EXPECT_EQ(seen.unknown_frees, 0u);
    EXPECT_EQ(seen.reused_addresses, 0u);
    size_t complete = 0;
    for (const auto& alloc : seen.allocs) complete += alloc.is_complete;
    EXPECT_EQ(complete, seen.allocs.size());
  }

  std::string folder_ = test_folder();
};

TEST_F(Preload, SizesAgreeWithExactCounts) {
  for (uint64_t rate : {kRate, uint64_t{512} << 10}) {
    SCOPED_TRACE(rate);
    ChannelFile channel(folder_ + "/channel", rate);
    Finished finished = run({"sizes"}, channel.path());
    HeapSeen seen = channel.read();
    expect_sound(seen);
    auto sites = sites_in(finished.out);
    ASSERT_EQ(sites.size(), 4u);
    for (const auto& site : sites) expect_agreement(seen, site);
    for (const auto& alloc : seen.allocs) {
      if (is_in(alloc, sites[0])) {
        EXPECT_GT(alloc.pcs.size(), 20u);
      }
      if (is_in(alloc, sites[2])) {
        EXPECT_EQ(alloc.function, HeapFunction::calloc);
      }
      if (is_in(alloc, sites[3])) {
        EXPECT_EQ(alloc.function, HeapFunction::operator_new);
      }
    }
    EXPECT_EQ(channel.header().ready, 1u);
    EXPECT_EQ(channel.header().dropped_live, 0u);
  }
}

TEST_F(Preload, TheRateRisesWithTheLoadAndEstimatesStayRight) {
  ChannelFile channel(folder_ + "/channel", 8 << 10, 2000);
  Finished finished = run({"sizes", "100000"}, channel.path());
  HeapSeen seen = channel.read();
  std::set<uint64_t> rates;
  for (const auto& alloc : seen.allocs) rates.insert(alloc.rate_bytes);
  EXPECT_GT(rates.size(), 1u);
  for (const auto& site : sites_in(finished.out)) expect_agreement(seen, site);
}

TEST_F(Preload, ThreadsFreeEachOthersBlocks) {
  ChannelFile channel(folder_ + "/channel", kRate);
  Finished finished = run({"threads"}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 1u);
  expect_agreement(seen, sites[0]);
  std::set<uint32_t> tids;
  for (const auto& alloc : seen.allocs) tids.insert(alloc.tid);
  EXPECT_GE(tids.size(), 8u);  // and perhaps the main thread
}

TEST_F(Preload, AForkedChildLeavesTheParentsChannelAlone) {
  ChannelFile channel(folder_ + "/channel", kRate);
  Finished finished = run({"fork"}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 2u);
  expect_agreement(seen, sites[0]);
  EXPECT_EQ(estimate(seen, sites[1]).objects.samples, 0u);
}

TEST_F(Preload, EachProcessHasItsOwnChannelWhereThePathAsksForIt) {
  Finished finished =
      run_program({HEAP_PROGRAM, "fork"},
                  {"LD_PRELOAD=" HEAP_LIBRARY, "ASSAY_HEAP_CHANNEL=" + folder_ + "/heap.%p",
                   "ASSAY_HEAP_RATE=65536", "ASSAY_HEAP_RING=8000000"});
  ASSERT_EQ(finished.status, 0) << finished.out;
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 2u);
  size_t parents = 0, children = 0;
  std::set<uint32_t> pids;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    paths.push_back(file.path());
  for (const auto& path : paths) {
    ChannelFile channel(path);
    ASSERT_TRUE(channel.is_good());
    pids.insert(channel.header().pid);
    EXPECT_TRUE(path.ends_with("heap." + std::to_string(channel.header().pid)));
    HeapSeen seen = channel.read();
    EXPECT_EQ(seen.bad_records, 0u);
    parents += estimate(seen, sites[0]).objects.samples;
    children += estimate(seen, sites[1]).objects.samples > 0;
  }
  EXPECT_EQ(pids.size(), 4u);
  EXPECT_GT(parents, 20u);
  EXPECT_EQ(children, 3u);
}

TEST_F(Preload, ForksInTheMiddleOfEverythingDoNotHang) {
  ChannelFile channel(folder_ + "/channel", 4 << 10);
  run({"fork_busy"}, channel.path());
  EXPECT_EQ(channel.read().bad_records, 0u);
}

TEST_F(Preload, AfterExecTheNewProgramGoesOn) {
  ChannelFile channel(folder_ + "/channel", kRate);
  Finished finished = run({"exec"}, channel.path());
  HeapSeen seen = channel.read();
  EXPECT_EQ(seen.bad_records, 0u);
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 2u);
  expect_agreement(seen, sites[0]);
  expect_agreement(seen, sites[1]);
}

TEST_F(Preload, ReallocChainsKeepWhatLivesRight) {
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  Finished finished = run({"realloc"}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 1u);
  Estimate live;  // the chains' ends: 10,000 bytes each, in a quarter of the rounds
  for (const auto& [address, alloc] : seen.live) {
    if (alloc.function == HeapFunction::realloc && alloc.bytes == 10000) live.add(1, alloc.share());
  }
  EXPECT_GT(live.samples, 50u);
  double truth = static_cast<double>(sites[0].live_objects);
  EXPECT_TRUE(agrees(live, truth, (16 << 10) * truth / 10000, 3));
}

TEST_F(Preload, AlignedFunctionsKeepTheirContracts) {
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  run({"aligned"}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  std::set<uint64_t> sizes;
  for (const auto& alloc : seen.allocs) {
    if (alloc.function == HeapFunction::aligned) sizes.insert(alloc.bytes);
  }
  EXPECT_EQ(sizes, (std::set<uint64_t>{3000, 5000, 6400}));
}

TEST_F(Preload, PluginsComeAndGo) {
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  Finished finished = run({"plugin", HEAP_PLUGIN}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  size_t in_plugin = 0;
  for (const auto& alloc : seen.allocs) in_plugin += alloc.bytes == 500;
  // 40,000 × 500 B at one sample per 16 KiB: 1,200 expected.
  EXPECT_GT(in_plugin, 900u);
  EXPECT_LT(in_plugin, 1500u);
}

TEST_F(Preload, StacksGoThroughSignalsAndTheirStack) {
  ChannelFile channel(folder_ + "/channel", 16 << 10);
  Finished finished = run({"signals"}, channel.path());
  HeapSeen seen = channel.read();
  expect_sound(seen);
  auto sites = sites_in(finished.out);
  ASSERT_EQ(sites.size(), 1u);
  expect_agreement(seen, sites[0]);
}

TEST_F(Preload, MappedMemoryOnRequest) {
  for (bool wanted : {false, true}) {
    ChannelFile channel(folder_ + "/channel", 512 << 10);
    channel.header().flags = wanted ? uint32_t{kHeapWithMmap} : 0;
    run({"mmap"}, channel.path());
    HeapSeen seen = channel.read();
    Estimate all, live;
    for (const auto& alloc : seen.allocs) {
      if (alloc.function == HeapFunction::mmap) all.add(1, alloc.share());
    }
    for (const auto& [address, alloc] : seen.live) {
      if (alloc.function == HeapFunction::mmap) live.add(1, alloc.share());
    }
    if (wanted) {
      EXPECT_TRUE(agrees(all, 2000, 8 * 2000, 9));  // rate / size is 8
      EXPECT_TRUE(agrees(live, 1000, 8 * 1000, 9));
    } else {
      EXPECT_EQ(all.samples, 0u);
    }
  }
}

// These libraries have an operator new that does not go through malloc.
TEST_F(Preload, OperatorsOfAllocatorLibrariesAreSampled) {
  int found = 0;
  for (std::string allocator :
       {"libtcmalloc.so.4", "libtcmalloc_minimal.so.4", "libjemalloc.so.2"}) {
    std::string path = "/usr/lib/x86_64-linux-gnu/" + allocator;
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(allocator);
    ++found;
    ChannelFile channel(folder_ + "/channel", kRate);
    Finished finished = run_program(
        {HEAP_PROGRAM, "sizes"},
        {"LD_PRELOAD=" HEAP_LIBRARY " " + path, "ASSAY_HEAP_CHANNEL=" + channel.path()});
    ASSERT_EQ(finished.status, 0) << finished.out;
    HeapSeen seen = channel.read();
    EXPECT_EQ(seen.bad_records, 0u);
    EXPECT_EQ(seen.unknown_frees, 0u);
    auto sites = sites_in(finished.out);
    ASSERT_EQ(sites.size(), 4u);
    for (const auto& site : sites) expect_agreement(seen, site);
  }
  if (found == 0) GTEST_SKIP() << "skipped: neither tcmalloc nor jemalloc is installed";
}

TEST_F(Preload, SwitchedOffItWritesNothing) {
  ChannelFile channel(folder_ + "/channel", kRate);
  channel.header().mode = static_cast<uint32_t>(HeapMode::off);
  run({"sizes", "5000"}, channel.path());
  EXPECT_EQ(channel.header().head, 0u);
  EXPECT_EQ(channel.header().ready, 1u);
}

TEST_F(Preload, AStrangeChannelIsLeftAlone) {
  {
    ChannelFile channel(folder_ + "/channel", kRate);
    channel.header().version = 99;
    run({"sizes", "500"}, channel.path());
    EXPECT_EQ(channel.header().head, 0u);
    EXPECT_EQ(channel.header().problem, static_cast<uint32_t>(HeapProblem::version));
  }
  {
    ChannelFile channel(folder_ + "/channel", kRate);
    channel.header().ring_bytes = uint64_t{1} << 40;
    run({"sizes", "500"}, channel.path());
    EXPECT_EQ(channel.header().head, 0u);
  }
  {
    ChannelFile channel(folder_ + "/channel", kRate);
    channel.header().pid = 1;  // another process's
    run({"sizes", "500"}, channel.path());
    EXPECT_EQ(channel.header().head, 0u);
  }
  run({"sizes", "500"}, folder_ + "/nothing-here");
}

// A program must run and end as it does without the library.
class StockProgram : public Preload,
                     public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(StockProgram, RunsAsItDoesAlone) {
  if (run_program({"sh", "-c", "command -v " + GetParam()[0]}, {}).status != 0)
    GTEST_SKIP() << "skipped: no " << GetParam()[0] << " here";
  Finished alone = run_program(GetParam(), {});
  Finished sampled = run_program(
      GetParam(), {"LD_PRELOAD=" HEAP_LIBRARY, "ASSAY_HEAP_CHANNEL=" + folder_ + "/heap.%p",
                   "ASSAY_HEAP_RATE=32768", "ASSAY_HEAP_RING=16777216"});
  EXPECT_EQ(sampled.status, alone.status) << sampled.out;
  EXPECT_EQ(sampled.out, alone.out);
  size_t allocs = 0, complete = 0;
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    paths.push_back(file.path());
  for (const auto& path : paths) {
    ChannelFile channel(path);
    HeapSeen seen = channel.read();
    EXPECT_EQ(seen.bad_records, 0u);
    for (const auto& alloc : seen.allocs) complete += alloc.is_complete;
    allocs += seen.allocs.size();
  }
  EXPECT_GT(allocs, 3u);
  EXPECT_GE(static_cast<double>(complete), 0.99 * static_cast<double>(allocs))
      << complete << " of " << allocs;
}

INSTANTIATE_TEST_SUITE_P(
    All, StockProgram,
    ::testing::Values(
        std::vector<std::string>{
            "/usr/bin/python3", "-c",
            "import json, re, threading\n"
            "def work():\n"
            "  for i in range(20): json.loads(json.dumps([{'a': list(range(500))}] * 50))\n"
            "ts = [threading.Thread(target=work) for _ in range(3)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]\n"
            "print(len(re.findall('a+', 'aab' * 10000)))"},
        std::vector<std::string>{
            "node", "-e",
            "let o = []; for (let i = 0; i < 50; i++) o.push(JSON.parse(JSON.stringify("
            "[...Array(2000).keys()].map(x => ({x, y: 'a' + x}))))); console.log(o.length)"},
        std::vector<std::string>{"sh", "-c", "for i in 1 2 3; do ls / | sort | wc -l; done"},
        std::vector<std::string>{"redis-server", "--port", "0", "--save", "", "--version"},
        std::vector<std::string>{"perl", "-e",
                                 "my @a = map { 'x' x $_ } 1..3000; print scalar(@a), \"\\n\""}),
    [](const auto& each) {
      std::string name = each.param[0].substr(each.param[0].rfind('/') + 1);
      return name.substr(0, name.find('-'));
    });

}  // namespace
}  // namespace assay::inject
