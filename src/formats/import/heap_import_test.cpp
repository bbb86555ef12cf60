// Heap profiles of other tools, and our own through their formats and back.
#include "formats/export/export_fixture.h"
#include "formats/gperftools/read_gperftools.h"
#include "formats/pprof/read_pprof.h"
#include "formats/pprof/wire.h"

namespace assay::formats {
namespace {

struct HeapTotals {
  int64_t live_bytes = 0, live_objects = 0, bytes = 0, objects = 0;
  bool operator==(const HeapTotals&) const = default;
};
std::ostream& operator<<(std::ostream& out, const HeapTotals& t) {
  return out << t.live_bytes << ' ' << t.live_objects << ' ' << t.bytes << ' ' << t.objects;
}
HeapTotals totals_of(const run::Reader& reader, const Selection& selection = {}) {
  HeapTotals sums;
  auto run = SelectedRun::make(reader, selection);
  EXPECT_TRUE(run) << run.error().text();
  auto rows = sum_up(**run);
  EXPECT_TRUE(rows) << rows.error().text();
  for (const TotalRow& row : *rows) {
    sums.live_bytes += row.inuse_bytes;
    sums.live_objects += row.inuse_objects;
    sums.bytes += row.alloc_bytes;
    sums.objects += row.alloc_objects;
  }
  return sums;
}

class HeapImport : public testing::Test {
 protected:
  std::unique_ptr<run::Reader> text(const std::string& bytes) {
    Input input = Input::of_bytes("heap", bytes);
    EXPECT_TRUE(looks_like_gperftools_heap(bytes));
    return imported(scratch_, [&](RunBuilder& b) { return read_gperftools_heap(input, b); });
  }
  std::unique_ptr<run::Reader> pprof(const std::string& bytes) {
    Input input = Input::of_bytes("heap", bytes);
    EXPECT_TRUE(input.load());
    return imported(scratch_, [&](RunBuilder& b) { return read_pprof(input, b); });
  }
  std::string text_error(const std::string& bytes) {
    auto writer = run::Writer::create(scratch_.file("bad.assay"), {}, true);
    RunBuilder builder(**writer, [](const std::string& name) { return name; });
    Input input = Input::of_bytes("bad file", bytes);
    auto done = read_gperftools_heap(input, builder);
    return done ? "" : done.error().what;
  }
  static bool has_note(const run::Reader& reader, std::string_view words) {
    for (const auto& note : reader.contents().notes) {
      if (note.text.find(words) != note.text.npos) return true;
    }
    return false;
  }
  run::ScratchDirectory scratch_;
};

// A heap run of ours: two threads of one process whose code is mapped, with estimates that are no
// whole numbers before they are rounded.
class HeapRoundTrip : public HeapImport {
 protected:
  HeapRoundTrip() {
    run_.edit().info.backend = "heap";
    run_.edit().info.window_end_ns = 10 * kNsPerSecond;
    model::ProcessId process = run_.add_process(100, "/opt/server");
    model::ThreadId one = run_.add_thread(process, 100, "server");
    model::ThreadId two = run_.add_thread(process, 101, "pool-1", "pool-*");
    model::StackId kept = run_.stack({"main", "keeps", "lib.so.1:malloc"});
    model::StackId freed = run_.stack({"main", "frees", "lib.so.1:malloc"});
    for (int i = 0; i < 40; ++i) {
      TimeNs at = i * kNsPerSecond / 8;
      run_.add_alloc(i % 3 == 0 ? two : one, kept, at, 1000 + 7 * static_cast<uint64_t>(i), 4096);
      run_.add_alloc(two, freed, at, 300, 4096, at + kNsPerMs);
    }
    for (const model::Module& module : run_.contents().modules) {
      uint64_t start = 0x10000000 * (module.id.value + uint64_t{1});
      run_.edit().mappings.push_back({process, {start, start + 0x100000, 0, module.id}, 0});
    }
  }
  analysis::FakeRun run_;
};

TEST_F(HeapRoundTrip, PprofKeepsEveryTotalThreadAndStack) {
  auto back = pprof(exported(run_, find_format("pprof")));
  ASSERT_TRUE(back);
  EXPECT_GT(totals_of(run_).objects, 400);
  EXPECT_EQ(totals_of(*back), totals_of(run_));
  Selection pool;
  pool.thread = "pool-1";
  EXPECT_EQ(totals_of(*back, pool), totals_of(run_, pool));
  for (Metric metric :
       {Metric::inuse_space, Metric::inuse_objects, Metric::alloc_space, Metric::alloc_objects}) {
    EXPECT_EQ(exported(*back, find_format("folded"), metric),
              exported(run_, find_format("folded"), metric))
        << metric_name(metric);
  }
  EXPECT_EQ(exported(*back, find_format("folded")), exported(run_, find_format("folded")))
      << "the live heap is what is shown first";
  EXPECT_NE(exported(*back, find_format("svg")).find("Live heap"), std::string::npos);
}

TEST_F(HeapRoundTrip, GperftoolsTextKeepsEveryTotalAndAddress) {
  std::string first = exported(run_, find_format("gperftools-heap"));
  auto back = text(first);
  ASSERT_TRUE(back);
  EXPECT_EQ(totals_of(*back), totals_of(run_));
  EXPECT_EQ(exported(*back, find_format("gperftools-heap")), first);
}

TEST_F(HeapRoundTrip, PprofAndThenTextHasAddressesToo) {
  auto back = pprof(exported(run_, find_format("pprof")));
  ASSERT_TRUE(back);
  auto again = text(exported(*back, find_format("gperftools-heap")));
  ASSERT_TRUE(again);
  EXPECT_EQ(totals_of(*again), totals_of(run_));
  EXPECT_NE(exported(*again, find_format("folded")).find("server+0x"), std::string::npos)
      << exported(*again, find_format("folded"));
}

TEST_F(HeapRoundTrip, APartOfTheTimeIsRefused) {
  auto back = pprof(exported(run_, find_format("pprof")));
  ASSERT_TRUE(back);
  ExportOptions options;
  options.format = find_format("folded");
  options.selection.to_ns = kNsPerSecond;
  auto done = export_run(*back, options, scratch_.file("out"));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("no times"), std::string::npos) << done.error().what;
}

constexpr const char* kRow = "  2: 1024 [ 4: 2048] @ 0x401010 0x402000\nMAPPED_LIBRARIES:\n";

TEST_F(HeapImport, SampledTextIsScaledAsPprofDoes) {
  const std::string head = "heap profile: 2: 1024 [4: 2048] @ ", rows = kRow;
  EXPECT_EQ(totals_of(*text(head + "heapprofile\n" + rows)), (HeapTotals{1024, 2, 2048, 4}));
  // 1 / (1 − e^(−512/524288)) = 1024.5
  HeapTotals scaled{1'049'088, 2049, 2'098'176, 4098};
  EXPECT_EQ(totals_of(*text(head + "heap_v2/524288\n" + rows)), scaled);
  EXPECT_EQ(totals_of(*text(head + "heap/1048576\n" + rows)), scaled) << "twice the rate, as Go";
  auto back = text(head + "heap_v2/524288\n" + rows);
  EXPECT_EQ(back->contents().heap_sums.at(0).rate_bytes, 524288);
  EXPECT_TRUE(back->contents().is_heap_alone());
}

TEST_F(HeapImport, JemallocsTextHasTheStackBeforeItsAmounts) {
  const std::string rows =
      "  t*: 3: 1124 [5: 2148]\n"
      "  t0: 3: 1124 [5: 2148] server\n"
      "@ 0x401010 0x402000\n"
      "  t*: 2: 1024 [4: 2048]\n"
      "  t0: 1: 512 [2: 1024]\n"
      "  t1: 1: 512 [2: 1024]\n"
      "@ 0x401020\n"
      "  t*: 1: 100 [1: 100]\n"
      "\nMAPPED_LIBRARIES:\n00400000-00500000 r-xp 00001000 08:01 1   /opt/server\n";
  EXPECT_EQ(totals_of(*text("heap_v2/1\n" + rows)), (HeapTotals{1124, 3, 2148, 5}));
  auto back = text("heap_v2/524288\n" + rows);
  EXPECT_EQ(back->contents().heap_sums.at(0).live_bytes, 1'049'088);
  EXPECT_EQ(exported(*text("heap_v2/1\n" + rows), find_format("folded")),
            "server;server+0x2fff;server+0x200f 1024\nserver;server+0x201f 100\n");
  EXPECT_NE(text_error("heap_v2/1\n@ 0x1\nrubbish\n").find("at offset 16"), std::string::npos);
}

TEST_F(HeapImport, WhatTextDoesNotSayIsNoted) {
  auto only_live = text("heap profile: 2: 1024 [0: 0] @ heapprofile\n2: 1024 [0: 0] @ 0x401010\n");
  EXPECT_EQ(totals_of(*only_live), (HeapTotals{1024, 2, 0, 0}));
  EXPECT_TRUE(has_note(*only_live, "freed before"));
  EXPECT_TRUE(has_note(*only_live, "without times"));
  auto growth = text("heap profile: 1: 8 [1: 8] @ growthz\n1: 8 [1: 8] @ 0x401010\n");
  EXPECT_TRUE(has_note(*growth, "from the system"));
  auto empty = text("heap profile: 0: 0 [0: 0] @ heapprofile\n");
  EXPECT_TRUE(empty->contents().is_heap_alone()) << "with nothing in it";
}

TEST_F(HeapImport, NamesOfCommentsAreUsed) {
  auto back = text(
      "heap profile: 3: 300 [3: 300] @ heapprofile\n"
      "3: 300 [3: 300] @ 0x10 0x401011 0x402000 0x500000\n"
      "# labels: {\"method\":\"Get\"}\n"
      "#\t0x401010\tinner+0x1\t\t/src/inner.go:7\n"
      "#\t0x401010\tvec<int, std::pair<a, b> >::outer+0x10\t/src/outer.go:12\n"
      "#\t0x402000\tmain+0x5\t/opt/server\n"
      "\n"
      "# runtime.MemStats\n"
      "# Alloc = 5\n");
  ASSERT_TRUE(back);
  // The first and the last address have no name, where Go leaves its allocator out.
  EXPECT_EQ(exported(*back, find_format("folded")),
            "test;main;vec<int, std::pair<a, b> >::outer;inner 300\n");
  const run::Contents& run = back->contents();
  const model::Frame& leaf = run.frames[run.stacks[run.heap_sums[0].stack.value].frame.value];
  const auto& names = run.locations[run.stacks[run.heap_sums[0].stack.value].frame.value];
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].file, "/src/inner.go");
  EXPECT_EQ(names[0].line, 7u);
  EXPECT_TRUE(names[0].inlined);
  EXPECT_FALSE(names[1].inlined);
  EXPECT_EQ(run.modules[leaf.module.value].path, "[unknown]");
}

TEST_F(HeapImport, MapsAndNamesGoTogether) {
  auto back = text(
      "heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x401011 0x402001\n"
      "#\t0x401011\tnamed+0x1\t/opt/server\n\nMAPPED_LIBRARIES:\n"
      "00400000-00500000 r-xp 00001000 08:01 1   /opt/server\n");
  EXPECT_EQ(exported(*back, find_format("folded")), "server;server+0x3000;named 8\n");
  ASSERT_EQ(back->contents().mappings.size(), 1u);
  EXPECT_EQ(back->contents().mappings[0].mapping.start, 0x400000u);
}

TEST_F(HeapImport, BadTextIsRefusedWithItsOffset) {
  EXPECT_EQ(text_error("heap profile: rubbish"), "bad file: no heap profile's header at offset 0");
  const std::string head = "heap profile: 1: 8 [1: 8] @ heapprofile\n";  // 40 bytes
  EXPECT_NE(text_error(head + "1: -8 [1: 8] @ 0x1\n").find("no row of a heap profile at offset 40"),
            std::string::npos);
  EXPECT_NE(text_error(head + "1: 8 [1: 8 @ 0x1\n").find("at offset 40"), std::string::npos);
  EXPECT_NE(text_error(head + "1: 8 [1: 8] @ 0x1 nonsense\n").find("bad address at offset 40"),
            std::string::npos);
}

TEST_F(HeapImport, SumsBeyondReasonAreRefused) {
  auto writer = run::Writer::create(scratch_.file("huge.assay"), {}, true);
  RunBuilder builder(**writer, [](const std::string& name) { return name; });
  builder.begin_file("huge");
  std::string row = "1: 9223372036854775807 [1: 9223372036854775807] @ 0x1\n";
  Input input = Input::of_bytes("huge", "heap profile: 1: 8 [1: 8] @ heapprofile\n" + row + row);
  ASSERT_TRUE(read_gperftools_heap(input, builder));
  auto done = builder.finish({});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("more than any memory"), std::string::npos);
}

// A profile of one sample with these types (name, unit) and values.
std::string profile_of(const std::vector<std::pair<std::string, std::string>>& types,
                       const std::vector<int64_t>& values) {
  WireWriter profile, sample, packed;
  std::vector<std::string> strings{""};
  auto string = [&](const std::string& text) {
    strings.push_back(text);
    return static_cast<uint64_t>(strings.size() - 1);
  };
  for (const auto& [name, unit] : types) {
    WireWriter type;
    type.number(1, string(name));
    type.number(2, string(unit));
    profile.message(1, type);
  }
  for (int64_t value : values) packed.varint(static_cast<uint64_t>(value));
  sample.message(2, packed);
  profile.message(2, sample);
  for (const std::string& text : strings) profile.bytes(6, text);
  return profile.str();
}

TEST_F(HeapImport, PprofOfOtherAllocatorsHasWhatItHas) {
  auto old = pprof(profile_of({{"objects", "count"}, {"space", "bytes"}}, {3, 300}));
  EXPECT_EQ(totals_of(*old), (HeapTotals{300, 3, 0, 0}));
  EXPECT_TRUE(has_note(*old, "freed before"));
  auto bytes_alone = pprof(profile_of({{"inuse_space", "bytes"}}, {300}));
  EXPECT_EQ(totals_of(*bytes_alone), (HeapTotals{300, 0, 0, 0}));
  auto allocated =
      pprof(profile_of({{"alloc_objects", "count"}, {"alloc_space", "bytes"}}, {3, 300}));
  EXPECT_EQ(totals_of(*allocated), (HeapTotals{0, 0, 300, 3}));
  EXPECT_TRUE(has_note(*allocated, "what of it still lives"));
  EXPECT_EQ(exported(*allocated, find_format("folded")), "test 300\n")
      << "what was allocated is shown";
  auto goroutines = pprof(profile_of({{"goroutine", "count"}}, {3}));
  EXPECT_FALSE(goroutines->contents().has_heap);
}

TEST_F(HeapImport, DifferencesOfTwoProfilesKeepWhatGrew) {
  std::vector<std::pair<std::string, std::string>> types{{"alloc_objects", "count"},
                                                         {"alloc_space", "bytes"},
                                                         {"inuse_objects", "count"},
                                                         {"inuse_space", "bytes"}};
  auto back = pprof(profile_of(types, {5, 500, -2, -200}));
  EXPECT_EQ(totals_of(*back), (HeapTotals{0, 0, 500, 5}));
  EXPECT_TRUE(has_note(*back, "2 of its values are less than nothing"));
}

// As when the disk was full, or the program ended while it wrote.
TEST_F(HeapImport, RowsThatHaveLessThanTheHeaderAreNoted) {
  constexpr const char* kCut = "it may have been cut";
  std::string head = "heap profile:    3:  30 [   3:  30] @ heapprofile\n";
  std::string one = "     1:  10 [     1:  10] @ 0x1 0x2\n",
              two = "     2:  20 [     2:  20] @ 0x3\n";
  EXPECT_FALSE(has_note(*text(head + one + two), kCut));
  EXPECT_TRUE(has_note(*text(head + one), kCut));
  std::string jemalloc = "heap_v2/1\n  t*: 3: 30 [0: 0]\n@ 0x1\n  t*: 1: 10 [0: 0]\n";
  EXPECT_TRUE(has_note(*text(jemalloc), kCut));
  EXPECT_FALSE(has_note(*text(jemalloc + "@ 0x2\n  t*: 2: 20 [0: 0]\n"), kCut));
}

}  // namespace
}  // namespace assay::formats
