// Readers on small files by hand: what they take, and that errors name file and offset.
#include <cstring>

#include "formats/export/export_fixture.h"
#include "formats/export/output.h"
#include "formats/folded/read_folded.h"
#include "formats/gperftools/read_gperftools.h"
#include "formats/gzip.h"
#include "formats/perf/perf_data.h"
#include "formats/perf/read_perf_script.h"
#include "formats/pprof/read_pprof.h"
#include "formats/speedscope/read_speedscope.h"

namespace assay::formats {
namespace {

class Readers : public testing::Test {
 protected:
  template <class Read>
  std::string error_of(const std::string& bytes, const Read& read) {
    auto writer = run::Writer::create(scratch_.file("bad.assay"), {}, true);
    RunBuilder builder(**writer, [](const std::string& name) { return name; });
    Input input = Input::of_bytes("bad file", bytes);
    Result<void> done = read(input, builder);
    return done ? "" : done.error().what;
  }
  std::string folded_error(const std::string& bytes) {
    return error_of(bytes, [](const Input& in, RunBuilder& b) { return read_folded(in, {}, b); });
  }
  run::ScratchDirectory scratch_;
};

TEST_F(Readers, FoldedErrorsNameFileAndOffset) {
  EXPECT_EQ(folded_error("a;b 1\nnonsense\n"), "bad file: a line without a value at offset 6");
  EXPECT_EQ(folded_error("a -5\n"), "bad file: a line without a value at offset 0");
  EXPECT_EQ(folded_error("# only a comment\n\na;b 3\n"), "");
}

std::string notes_of(const run::Reader& reader) {
  std::string text;
  for (const auto& note : reader.contents().notes) text += note.topic + ": " + note.text + "\n";
  return text;
}

TEST_F(Readers, FoldedStacksThatDoNotSayWhatTheyAreAreNoted) {
  auto read = [&](const char* name, const ReadOptions& options) {
    Input input = Input::of_bytes(name, "main;work 30\nmain;sleep 70\n");
    return imported(scratch_, [&](RunBuilder& b) { return read_folded(input, options, b); });
  };
  ReadOptions options;
  options.unit_ns = kNsPerMs;
  auto unsaid = read("stacks.folded", options);
  EXPECT_EQ(sums_of(*unsaid).cpu, 100 * kNsPerMs);
  EXPECT_NE(notes_of(*unsaid).find("meaning: "), std::string::npos);
  EXPECT_TRUE(std::ranges::any_of(unsaid->contents().facts, [](const model::Fact& fact) {
    return fact.key == "meaning" && fact.value == "unsaid";
  })) << "the verdict asks for it";
  options.meaning = Meaning::cpu;
  EXPECT_EQ(notes_of(*read("stacks.folded", options)).find("meaning: "), std::string::npos);
  options.meaning = Meaning::off;
  EXPECT_EQ(sums_of(*read("stacks.folded", options)), (Sums{0, 0, 2, 100 * kNsPerMs, 0}));
  options.meaning = Meaning::unsaid;
  EXPECT_EQ(sums_of(*read("out/main.offcpu.folded", options)).off, 100 * kNsPerMs);
  EXPECT_EQ(sums_of(*read("out/main.oncpu.folded", options)).cpu, 100 * kNsPerMs);
}

TEST_F(Readers, FoldedCountsWithFractionsAreNoted) {
  auto read = [&](int64_t period_ns) {
    ReadOptions options;
    options.period_ns = period_ns;
    Input input = Input::of_bytes("stacks", "main;a 2.25\nmain;b 0.25\nmain;c 3\n");
    return imported(scratch_, [&](RunBuilder& b) { return read_folded(input, options, b); });
  };
  auto rounded = read(0);
  EXPECT_EQ(sums_of(*rounded).samples, 5);
  EXPECT_NE(notes_of(*rounded).find("counts: 2 lines"), std::string::npos) << notes_of(*rounded);
  EXPECT_EQ(sums_of(*read(kNsPerMs)).cpu, 5'500'000) << "with a period the time is kept";
}

TEST_F(Readers, FoldedCountsBeyondReasonAreRefusedWhereTheyStandUnlessTheUserKnows) {
  constexpr const char* kHuge = "b 1\na 4000000000\nc nonsense\n";
  EXPECT_EQ(folded_error(kHuge), "bad file: more than 20000000 samples are counted at offset 4");
  ReadOptions options;
  options.period_ns = kNsPerMs;
  Input input = Input::of_bytes("huge", "b 1\na 4000000000\n");
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_folded(input, options, b); });
  Sums sums = sums_of(*back);
  EXPECT_EQ(sums.cpu, 4'000'000'001 * kNsPerMs) << "the time is exact";
  EXPECT_NEAR(static_cast<double>(sums.samples), 2e6, 2);
  EXPECT_NE(notes_of(*back).find("counts are scaled down by 2000"), std::string::npos)
      << notes_of(*back);
}

TEST_F(Readers, EqualSumsAreOne) {
  Input input = Input::of_bytes("stacks", "main;[blocked: timer] 1\nmain;[blocked: timer] 5\n");
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_folded(input, {}, b); });
  std::vector<int64_t> lengths;
  (void)back->for_each_wait({}, [&](const model::Wait& w) { lengths.push_back(w.duration_ns); });
  EXPECT_EQ(lengths, (std::vector<int64_t>{3, 3}));
}

TEST_F(Readers, FoldedFilesOfRecordAreInNs) {
  auto read = [&](const char* name, ReadOptions options = {}) {
    Input input = Input::of_bytes(name, "main;work 30000000\n");
    return imported(scratch_, [&](RunBuilder& b) { return read_folded(input, options, b); });
  };
  auto on = read("out/main.oncpu.folded");
  EXPECT_EQ(sums_of(*on), (Sums{1, 30'000'000, 0, 0, 0}));
  EXPECT_TRUE(std::ranges::none_of(on->contents().facts,
                                   [](const model::Fact& fact) { return fact.key == "unit"; }));
  EXPECT_EQ(sums_of(*read("out/main.offcpu.folded")), (Sums{0, 0, 1, 30'000'000, 0}));
  ReadOptions us;
  us.unit_ns = kNsPerUs;
  us.unit_said = true;
  EXPECT_EQ(sums_of(*read("out/main.offcpu.folded", us)).off, 30'000'000 * kNsPerUs);
}

TEST_F(Readers, FoldedWaitsKeepTheKindOfTheirLeaf) {
  constexpr const char* kText =
      "main;read;entry_SYSCALL_64_after_hwframe;vfs_read;io_schedule;[blocked: disk] 5\n"
      "main;work;do_nanosleep;[blocked: timer] 4\n"
      "main;work;do_epoll_wait;schedule;[blocked: poll] 3\n"
      "main;work;[run queue] 2\n"
      "main;work 1\n";
  Input input = Input::of_bytes("wall", kText);
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_folded(input, {}, b); });
  std::string wall = exported(*back, find_format("folded"), Metric::wall);
  Lines lines(kText);
  for (std::string_view line; lines.next(line);) {
    EXPECT_NE(wall.find("test;" + std::string(line) + "\n"), wall.npos) << line << "\n" << wall;
  }
}

TEST_F(Readers, PerfScriptInItsVariants) {
  constexpr const char* kText =
      "# header\n"
      "my server 10/11 [003] 5.000100:     250000 cpu-clock:ppp: \n"
      "\t    5581 inner+0x1 (inlined)\n"
      "\t    5581 outer+0x21 (/opt/server)\n"
      "\t    5600 [unknown] (/opt/server)\n"
      "\tffffffff81000001 do_it+0x1 ([kernel.kallsyms])\n"
      "\n"
      "my server 10/11 5.000300: cpu-clock:ppp: \n"
      "\t    5581 outer+0x21 (/opt/server)\n"
      "\n"
      "other    12 [000]     6.5:          1 page-faults: \n"
      "\t    1 x (/opt/other)\n";
  Input input = Input::of_bytes("script", kText);
  EXPECT_TRUE(looks_like_perf_script(input.bytes()));
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_perf_script(input, {}, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back).samples, 2) << "another event is left out";
  EXPECT_EQ(back->contents().threads[0].name, "my server");
  EXPECT_EQ(back->contents().threads[0].tid, 11);
  std::string folded = exported(*back, find_format("folded"), Metric::samples);
  EXPECT_NE(folded.find(";do_it;server+0x5600;outer;inner 1"), folded.npos) << folded;
  bool noted = false;
  for (const auto& note : back->contents().notes) noted = noted || note.topic == "events";
  EXPECT_TRUE(noted);
}

TEST_F(Readers, PerfScriptErrorsNameTheLine) {
  auto read = [](const Input& in, RunBuilder& b) { return read_perf_script(in, {}, b); };
  EXPECT_EQ(error_of("\t 55 f (x)\n", read),
            "bad file: a frame that belongs to no sample at offset 0");
  EXPECT_EQ(error_of("a 1 2.5: 1 x:\n\t55 f (x)\n\nrubbish\n", read),
            "bad file: a line that is neither sample nor frame at offset 25");
}

std::string words(std::initializer_list<uint64_t> list) {
  std::string bytes;
  for (uint64_t word : list) bytes.append(reinterpret_cast<const char*>(&word), 8);
  return bytes;
}

TEST_F(Readers, GperftoolsCpu) {
  std::string bytes = words({0, 3, 0, 10'000, 0, 7, 2, 0x401010, 0x401101, 3, 1, 0x999, 0, 1, 0}) +
                      "00400000-00500000 r-xp 00001000 08:01 1   /opt/prog\n";
  Input input = Input::of_bytes("prof", bytes);
  EXPECT_TRUE(looks_like_gperftools_cpu(bytes));
  auto back = imported(scratch_, [&](RunBuilder& b) { return read_gperftools_cpu(input, b); });
  ASSERT_TRUE(back);
  EXPECT_EQ(sums_of(*back), (Sums{10, 100'000'000, 0, 0, 0}));
  std::string folded = exported(*back, find_format("folded"), Metric::samples);
  // Callers are return addresses: one less. Offsets in the file: − start + offset.
  EXPECT_NE(folded.find(";prog+0x2100;prog+0x2010 7"), folded.npos) << folded;
  auto read = [](const Input& in, RunBuilder& b) { return read_gperftools_cpu(in, b); };
  EXPECT_NE(error_of(bytes.substr(0, 72), read).find("without its trailer at offset 72"),
            std::string::npos);
  EXPECT_NE(error_of(words({0, 3, 0, 1, 0, 1, 1u << 30, 5}), read).find("too long at offset 40"),
            std::string::npos);
}

TEST_F(Readers, SpeedscopeRefusesWhatItsSchemaForbids) {
  auto read = [](const Input& in, RunBuilder& b) { return read_speedscope(in, {}, b); };
  EXPECT_NE(error_of("{\"a\":", read).find("at offset"), std::string::npos);
  EXPECT_NE(error_of("{}", read).find("no shared frames"), std::string::npos);
  EXPECT_NE(error_of(R"({"shared":{"frames":[]},"profiles":[{"type":"sampled","unit":"none",)"
                     R"("samples":[[1]],"weights":[1]}]})",
                     read)
                .find("unknown frame"),
            std::string::npos);
}

TEST_F(Readers, MalformedListsOfSpeedscopeAreRefused) {
  auto read = [](const Input& in, RunBuilder& b) { return read_speedscope(in, {}, b); };
  auto error = [&](const std::string& lists) {
    return error_of(R"({"profiles":[{"unit":"none","type":)" + lists +
                        R"(}],"shared":{"frames":[{"name":"f","samples":[9]}]}})",
                    read);
  };
  EXPECT_EQ(error(R"("sampled","samples":[[0],[]],"weights":[1,2])"), "");
  EXPECT_NE(error(R"("sampled","samples":[[0]],"weights":[1,2])").find("do not match"),
            std::string::npos);
  EXPECT_NE(error(R"("sampled","samples":[0],"weights":[1])").find("malformed sample"),
            std::string::npos);
  EXPECT_NE(error(R"("sampled","samples":[[0]],"weights":["1"])").find("malformed sample"),
            std::string::npos);
  EXPECT_NE(error(R"("sampled","samples":[[-1]],"weights":[1])").find("unknown frame"),
            std::string::npos);
  EXPECT_NE(error(R"("sampled","samples":1,"weights":1)").find("do not match"), std::string::npos);
  EXPECT_EQ(error(R"("evented","events":[{"type":"O","frame":0,"at":1},)"
                  R"({"type":"C","frame":0,"at":2}])"),
            "");
  EXPECT_NE(error(R"("evented","events":[{"type":"O","frame":7,"at":1}])").find("malformed event"),
            std::string::npos);
  EXPECT_NE(error(R"("evented","events":[5])").find("malformed event"), std::string::npos);
  EXPECT_NE(error(R"("evented","events":[{"type":"C","frame":0,"at":1}])").find("do not match"),
            std::string::npos);
}

TEST_F(Readers, AnothersSpeedscopeFileIsCpuTimeUnlessToldOtherwise) {
  const char* kFile =
      R"({"exporter":"other","shared":{"frames":[{"name":"f"}]},"profiles":[{"type":"sampled",)"
      R"("name":"off · x","unit":"nanoseconds","samples":[[0]],"weights":[9]}]})";
  auto read = [&](const ReadOptions& options) {
    Input input = Input::of_bytes("file", kFile);
    return sums_of(
        *imported(scratch_, [&](RunBuilder& b) { return read_speedscope(input, options, b); }));
  };
  EXPECT_EQ(read({}), (Sums{1, 9, 0, 0, 0}));
  ReadOptions off;
  off.meaning = Meaning::off;
  EXPECT_EQ(read(off), (Sums{0, 0, 1, 9, 0}));
}

TEST_F(Readers, CountsOfASpeedscopeFileAreSamplesAndTimeByTheRate) {
  const char* kFile =
      R"({"exporter":"other","shared":{"frames":[{"name":"f"}]},"profiles":[{"type":"sampled",)"
      R"("name":"x","unit":"none","samples":[[0]],"weights":[5]}]})";
  auto read = [&](const ReadOptions& options) {
    Input input = Input::of_bytes("file", kFile);
    return imported(scratch_, [&](RunBuilder& b) { return read_speedscope(input, options, b); });
  };
  EXPECT_EQ(sums_of(*read({})), (Sums{5, 5, 0, 0, 0}));
  ReadOptions options;
  options.period_ns = kNsPerMs;
  auto timed = read(options);
  EXPECT_EQ(sums_of(*timed), (Sums{5, 5 * kNsPerMs, 0, 0, 0}));
  EXPECT_EQ(notes_of(*timed).find("unit: "), std::string::npos);
}

TEST_F(Readers, PprofErrorsNameTheOffset) {
  auto read = [](const Input& in, RunBuilder& b) { return read_pprof(in, b); };
  EXPECT_NE(error_of("\x0a\x04\x08\x01", read).find("at offset"), std::string::npos);
  EXPECT_NE(error_of("", read).find("without a sample type"), std::string::npos);
}

TEST_F(Readers, PerfDataErrorsNameTheOffset) {
  auto error = [](std::string bytes) {
    Input input = Input::of_bytes("perf.data", std::move(bytes));
    auto data = PerfData::open(input);
    return data ? std::string() : data.error().what;
  };
  EXPECT_EQ(error("PERFILE2"), "perf.data: the file ends in its header at offset 8");
  EXPECT_NE(error("PERFILE2" + words({16}) + words({0x0018000000000009})).find("at offset 16"),
            std::string::npos);
}

TEST(Gzip, BombsAndCutsAreErrors) {
  auto packed = gzip(std::string(10'000'000, 'a'));
  ASSERT_TRUE(packed);
  EXPECT_EQ(gunzip(*packed, 20'000'000)->size(), 10'000'000u);
  EXPECT_FALSE(gunzip(*packed, 1'000'000));
  EXPECT_FALSE(gunzip(packed->substr(0, packed->size() / 2), 20'000'000));
}

TEST(Output, IsThereWholeOrNotAtAll) {
  run::ScratchDirectory scratch;
  {
    auto output = Output::create(scratch.file("x"));
    ASSERT_TRUE(output);
    output->write("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  auto output = Output::create(scratch.file("x"));
  output->write("whole");
  ASSERT_TRUE(output->commit());
  EXPECT_EQ(slurp(scratch.file("x")), "whole");
}

}  // namespace
}  // namespace assay::formats
