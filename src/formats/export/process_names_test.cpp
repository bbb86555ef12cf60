// Every export names a process as the report does, also where its program file is called otherwise.
#include <nlohmann/json.hpp>

#include "formats/export/export_fixture.h"
#include "formats/gzip.h"
#include "formats/pprof/profile_message.h"

namespace assay::formats {
namespace {

constexpr std::string_view kName = "redis-server", kFile = "redis-check-rdb";

// Debian's redis-server is a link to redis-check-rdb.
class ProcessNames : public testing::Test {
 protected:
  ProcessNames() {
    model::ProcessId process = run_.add_process(100, "/usr/bin/" + std::string(kFile), "");
    run_.edit().processes[process.value].comm = kName;
    EXPECT_EQ(model::process_name(run_.contents().processes[process.value]), kName);
    model::ThreadId thread = run_.add_thread(process, 100, "");
    run_.add_samples(thread, run_.stack({"main", "aeMain"}), 3, kNsPerMs);
    run_.add_wait(thread, run_.stack({"main", "k:futex_wait"}), 10, 500);
  }
  analysis::FakeRun run_;
};

TEST_F(ProcessNames, Text) {
  EXPECT_EQ(exported(run_, find_format("folded")), "redis-server;main;aeMain 3000000\n");
  std::string script = exported(run_, find_format("perf-script"), Metric::cpu);
  EXPECT_TRUE(script.starts_with("redis-server 100/100 ")) << script;
  std::string svg = exported(run_, find_format("svg"));
  EXPECT_NE(svg.find(kName), svg.npos);
  EXPECT_EQ(svg.find(kFile), svg.npos);
}

TEST_F(ProcessNames, Json) {
  auto speedscope = nlohmann::json::parse(exported(run_, find_format("speedscope")));
  ASSERT_EQ(speedscope["profiles"].size(), 2u);
  for (const auto& profile : speedscope["profiles"]) {
    EXPECT_TRUE(profile["name"].get<std::string>().ends_with(" · redis-server")) << profile["name"];
  }
  auto firefox = nlohmann::json::parse(exported(run_, find_format("firefox")));
  EXPECT_EQ(firefox["threads"][0]["processName"].get<std::string>(), kName);
}

TEST_F(ProcessNames, PprofLabels) {
  auto plain = gunzip(exported(run_, find_format("pprof")), 1 << 20);
  ASSERT_TRUE(plain);
  Input input = Input::of_bytes("test", *plain);
  auto profile = decode_profile(input);
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->samples.size(), 2u);
  for (const auto& [bytes, offset] : profile->samples) {
    ProfileSample sample;
    ASSERT_TRUE(decode_sample(*profile, bytes, sample));
    std::string_view process;
    for (const auto& label : sample.labels) {
      if (label.key == "process") process = label.text;
    }
    EXPECT_EQ(process, kName);
  }
}

// A shell that starts the server is not what the profile is of.
TEST(MainProgram, OfAPprofFileIsTheBusiestProcesss) {
  analysis::FakeRun run;
  model::ThreadId shell = run.add_thread(run.add_process(1, "/usr/lib/shell"), 1, "shell");
  model::ThreadId server = run.add_thread(run.add_process(2, "/opt/server"), 2, "server");
  run.add_samples(shell, run.stack({"shell:main"}), 1, kNsPerMs);
  run.add_samples(server, run.stack({"main"}), 3, kNsPerMs);
  auto plain = gunzip(exported(run, find_format("pprof")), 1 << 20);
  ASSERT_TRUE(plain);
  Input input = Input::of_bytes("test", *plain);
  auto profile = decode_profile(input);
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->mappings.size(), 2u);
  EXPECT_EQ(profile->mappings[0].file, "/opt/server");
}

TEST_F(ProcessNames, FilesPerProcess) {
  run::ScratchDirectory scratch;
  ExportOptions options;
  options.format = find_format("svg");
  options.metric = Metric::cpu;
  auto paths = export_by_process(run_, options, scratch.path().string(), ".svg");
  ASSERT_TRUE(paths) << paths.error().text();
  ASSERT_EQ(*paths, std::vector<std::string>{scratch.file("redis-server.svg")});
  std::string svg = slurp(paths->front());
  EXPECT_NE(svg.find("redis-server: "), svg.npos) << "its title";
}

// It is found by either name.
TEST_F(ProcessNames, Selection) {
  for (std::string_view name : {kName, kFile}) {
    Selection selection;
    selection.processes = {std::string(name)};
    EXPECT_EQ(sums_of(run_, selection).samples, 3) << name;
  }
}

}  // namespace
}  // namespace assay::formats
