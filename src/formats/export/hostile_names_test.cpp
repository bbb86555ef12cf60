// Names of every kind of malice through every writer: the file stays one that its readers accept,
// and nothing of a name acts outside its place.
#include <nlohmann/json.hpp>

#include "formats/export/export_fixture.h"
#include "formats/export/text.h"
#include "formats/gzip.h"
#include "formats/pprof/profile_message.h"

namespace assay::formats {
namespace {

const std::string kHuge(100'000, 'x');
const std::vector<std::string> kNames{
    "semi;colon",
    "line\nend\r\n",
    "tab\tand \"quotes\" and 'single'",
    "</script><script>alert(1)</script>",
    "]]><![CDATA[<b>",
    "back\\slash & ampersand",
    "right\xe2\x80\xaeto left",
    "broken \xff\xfe utf-8 \xc3",
    std::string("null\0byte", 9),
    "\x1b[31mred",
    "=cmd|' /C calc'!A0",
    "name 42",
    "",
    kHuge,
};

class HostileNames : public testing::Test {
 protected:
  HostileNames() {
    run_.edit().info.target = "<target>\"';\n";
    for (size_t i = 0; i < kNames.size(); ++i) {
      auto process = run_.add_process(static_cast<pid_t>(100 + i), "/opt/" + kNames[i], kNames[i]);
      auto thread =
          run_.add_thread(process, static_cast<pid_t>(100 + i), kNames[i], kNames[i] + "*");
      auto frame = run_.frame("plain" + std::to_string(i));
      run_.edit().locations[frame.value][0].function = kNames[i];
      run_.edit().locations[frame.value][0].file = kNames[i];
      run_.edit().locations[frame.value][0].system_name = kNames[i];
      run_.edit().modules.push_back({{static_cast<uint32_t>(run_.edit().modules.size())},
                                     model::ModuleKind::elf,
                                     kNames[i],
                                     kNames[i]});
      auto module = run_.edit().modules.back().id;
      model::FrameId unnamed{static_cast<uint32_t>(run_.edit().frames.size())};
      run_.edit().frames.push_back({module, 0x1234});
      run_.edit().locations.emplace_back();
      auto stack = run_.push(run_.push({}, unnamed), frame);
      run_.add_sample(thread, stack, 5, 1000);
      run_.add_wait(thread, stack, 10, 500);
    }
  }
  analysis::FakeRun run_;
};

void expect_clean(const std::string& text) {
  for (char c : text) ASSERT_FALSE(static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t');
  EXPECT_EQ(text.find("\xe2\x80\xae"), text.npos);
  EXPECT_EQ(clean_text(text, SIZE_MAX).find('\xff'), std::string::npos);
  EXPECT_LT(text.size(), 3'000'000u);
}

TEST_F(HostileNames, Folded) {
  std::string text = exported(run_, find_format("folded"));
  expect_clean(text);
  std::istringstream lines(text);
  int64_t total = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ';'), 2) << line.substr(0, 200);
    total += std::stoll(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(total, static_cast<int64_t>(kNames.size()) * 1000);
  EXPECT_EQ(count, static_cast<int64_t>(kNames.size()));
}

TEST_F(HostileNames, Svg) {
  ExportOptions options;
  options.format = find_format("svg");
  options.title = kNames[3];
  std::string text = exported(run_, options);
  expect_clean(text);
  // One script, ours; one CDATA, around it.
  auto count = [&](std::string_view what) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++n;
    return n;
  };
  EXPECT_EQ(count("<script"), 1u);
  EXPECT_EQ(count("</script>"), 1u);
  EXPECT_EQ(count("<![CDATA["), 1u);
  EXPECT_EQ(count("alert(1)"), count("&gt;alert(1)&lt;")) << "as text only";
  EXPECT_EQ(count("<g "), count("</g>"));
  EXPECT_EQ(count("href"), 0u);
  EXPECT_EQ(count("http"), 3u) << "three namespaces, nothing else";
}

TEST_F(HostileNames, Json) {
  for (const FormatSpec* format : {find_format("speedscope"), find_format("firefox")}) {
    std::string text = exported(run_, format);
    expect_clean(text);
    auto parsed = nlohmann::json::parse(text, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << format->name;
    EXPECT_EQ(text.find("</script"), text.npos);
  }
}

TEST_F(HostileNames, Tables) {
  std::string text = exported(run_, find_format("tsv"));
  expect_clean(text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 10) << line.substr(0, 200);
  }
  expect_clean(exported(run_, find_format("collapsed-by-second")));
  EXPECT_NE(exported(run_, find_format("csv")).find("\"tab and \"\"quotes\"\" and 'single'\""),
            std::string::npos);
}

TEST_F(HostileNames, PerfScript) {
  std::string text = exported(run_, find_format("perf-script"), Metric::wall);
  expect_clean(text);
  std::istringstream lines(text);
  size_t heads = 0;
  for (std::string line; std::getline(lines, line);) heads += !line.empty() && line[0] != '\t';
  EXPECT_EQ(heads, 2 * kNames.size());
}

TEST_F(HostileNames, Pprof) {
  auto plain = gunzip(exported(run_, find_format("pprof")), 1 << 24);
  ASSERT_TRUE(plain);
  Input input = Input::of_bytes("test", *plain);
  auto profile = decode_profile(input);
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->samples.size(), 2 * kNames.size());
  for (std::string_view text : profile->strings) expect_clean(std::string(text));
}

// Spreadsheets compute what begins so.
TEST_F(HostileNames, NoCellOfATableIsComputed) {
  for (std::string_view format : {"csv", "tsv", "collapsed-by-second"}) {
    std::string text = exported(run_, find_format(format));
    bool begins_cell = format != "collapsed-by-second";  // there the stack's root does
    EXPECT_EQ(text.find("'=cmd") != text.npos, begins_cell) << format;
    for (const char* before : {"\n", "\t", ",", "\""})
      EXPECT_EQ(text.find(std::string(before) + "=cmd"), text.npos) << format;
  }
  EXPECT_EQ(harmless_cell("=1"), "'=1");
  EXPECT_EQ(harmless_cell(" @x"), "' @x");
  EXPECT_EQ(harmless_cell("-[A b]"), "'-[A b]");
  EXPECT_EQ(harmless_cell("+x"), "'+x");
  EXPECT_EQ(harmless_cell("a=b"), "a=b");
  EXPECT_EQ(harmless_cell(""), "");
}

TEST(Text, FileNamesStayInTheirDirectory) {
  EXPECT_EQ(file_name_text("../../etc/passwd"), "etc-passwd");
  EXPECT_EQ(file_name_text(".hidden"), "hidden");
  EXPECT_EQ(file_name_text("worker 0"), "worker-0");
  EXPECT_EQ(file_name_text("//"), "unnamed");
}

TEST(Text, LongNamesAreCutWithAMark) {
  EXPECT_EQ(clean_text("äöü…", 2), "äö…");
  EXPECT_EQ(clean_text("\xf4\x90\x80\x80", 10), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace assay::formats
