// pprof of other writers: what types without a meaning become, and files that were cut.
#include "formats/pprof/read_pprof.h"

#include "formats/export/export_fixture.h"
#include "formats/pprof/wire.h"

namespace assay::formats {
namespace {

// One value type; one stack, "f", with each of the values in turn.
std::string profile(const std::string& type, const std::string& unit,
                    std::initializer_list<int64_t> values) {
  WireWriter file, value_type, location, line, function;
  value_type.number(1, uint64_t{1});
  value_type.number(2, uint64_t{2});
  file.message(1, value_type);
  for (int64_t value : values) {
    WireWriter sample;
    sample.number(1, uint64_t{1});
    sample.number(2, value);
    file.message(2, sample);
  }
  location.number(1, uint64_t{1});
  line.number(1, uint64_t{1});
  location.message(4, line);
  file.message(4, location);
  function.number(1, uint64_t{1});
  function.number(2, uint64_t{3});
  file.message(5, function);
  for (const std::string& text : {std::string(), type, unit, std::string("f")}) file.bytes(6, text);
  return file.str();
}

class Pprof : public testing::Test {
 protected:
  std::unique_ptr<run::Reader> read(const std::string& bytes, const ReadOptions& options = {}) {
    Input input = Input::of_bytes("file", bytes);
    return imported(scratch_, [&](RunBuilder& b) { return read_pprof(input, b, options); });
  }
  std::string error_of(const std::string& bytes, const ReadOptions& options = {}) {
    auto writer = run::Writer::create(scratch_.file("bad.assay"), {}, true);
    RunBuilder builder(**writer, [](const std::string& name) { return name; });
    Input input = Input::of_bytes("file", bytes);
    auto done = read_pprof(input, builder, options);
    return done ? "" : done.error().what;
  }
  static std::string topics(const run::Reader& reader) {
    std::string all;
    for (const auto& note : reader.contents().notes) all += note.topic + ' ';
    return all;
  }
  run::ScratchDirectory scratch_;
};

TEST_F(Pprof, TimeThatSaysNeitherRunningNorWaitingIsAsTheUserSays) {
  std::string wall = profile("wall", "nanoseconds", {5, 7});
  auto unsaid = read(wall);
  EXPECT_EQ(sums_of(*unsaid), (Sums{2, 12, 0, 0, 0}));
  EXPECT_NE(topics(*unsaid).find("meaning"), std::string::npos);
  ReadOptions options;
  options.meaning = Meaning::off;
  EXPECT_EQ(sums_of(*read(wall, options)), (Sums{0, 0, 2, 12, 0}));
  EXPECT_NE(error_of(profile("cpu", "nanoseconds", {5}), options).find("--as is for"),
            std::string::npos);
  options.meaning = Meaning::cpu;
  auto said = read(wall, options);
  EXPECT_EQ(sums_of(*said).cpu, 12);
  EXPECT_EQ(topics(*said).find("meaning"), std::string::npos);
  EXPECT_EQ(topics(*read(profile("cpu", "nanoseconds", {5}))).find("meaning"), std::string::npos);
}

TEST_F(Pprof, CountsOfSamplesAreSamplesAndTimeByTheRate) {
  std::string counts = profile("samples", "count", {5, 2});
  auto plain = read(counts);
  EXPECT_EQ(sums_of(*plain), (Sums{7, 7, 0, 0, 0}));
  EXPECT_NE(topics(*plain).find("unit"), std::string::npos);
  ReadOptions options;
  options.period_ns = 10 * kNsPerMs;
  auto timed = read(counts, options);
  EXPECT_EQ(sums_of(*timed), (Sums{7, 70 * kNsPerMs, 0, 0, 0}));
  EXPECT_EQ(topics(*timed).find("unit"), std::string::npos);
  EXPECT_EQ(sums_of(*read(profile("goroutine", "count", {5}), options)).cpu, 5)
      << "other counts are no time";
}

TEST_F(Pprof, ValuesBelowZeroAreNoted) {
  auto back = read(profile("cpu", "nanoseconds", {5, -3}));
  EXPECT_EQ(sums_of(*back).cpu, 5);
  EXPECT_NE(topics(*back).find("values"), std::string::npos);
}

TEST_F(Pprof, AFileCutBeforeItsStringsIsRefused) {
  std::string whole = profile("cpu", "nanoseconds", {5});
  ASSERT_EQ(error_of(whole), "");
  // Without the last string, the function's name: "2 f" and its tag.
  EXPECT_NE(error_of(whole.substr(0, whole.size() - 3)).find("a name beyond the table of strings"),
            std::string::npos);
  EXPECT_NE(error_of(whole.substr(0, whole.find("cpu") - 2)).find("at offset"), std::string::npos);
}

}  // namespace
}  // namespace assay::formats
