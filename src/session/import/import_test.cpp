#include "session/import/import.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/testing/loopback_listener.h"
#include "base/unique_fd.h"
#include "formats/gzip.h"
#include "run/run_fixture.h"
#include "session/import/import_http.h"

namespace assay::session {
namespace {

std::string golden(const std::string& name) {
  return SOURCE_ROOT "/tests/golden/" + name;
}

struct Found {
  uint64_t samples = 0, waits = 0;
  int64_t cpu_ns = 0, wait_ns = 0;
  bool operator==(const Found&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Found& f) {
  return out << f.samples << ' ' << f.waits << ' ' << f.cpu_ns << ' ' << f.wait_ns;
}

class ImportTest : public testing::Test {
 protected:
  Result<ImportOutcome> import(const std::vector<std::string>& inputs) {
    ImportOptions options;
    options.inputs = inputs;
    options.output = scratch_.file("run.assay");
    options.overwrite = true;
    options.symbolize = false;  // names depend on the machine
    return import_files(options);
  }
  std::unique_ptr<run::Reader> read_back() {
    auto reader = run::Reader::open(scratch_.file("run.assay"));
    EXPECT_TRUE(reader) << reader.error().text();
    return reader ? std::move(*reader) : nullptr;
  }
  Found found() {
    Found sums;
    auto reader = read_back();
    (void)reader->for_each_sample({}, [&](const model::Sample& s) {
      ++sums.samples;
      sums.cpu_ns += s.weight_ns;
    });
    (void)reader->for_each_wait({}, [&](const model::Wait& w) {
      ++sums.waits;
      sums.wait_ns += w.duration_ns;
    });
    return sums;
  }
  run::ScratchDirectory scratch_;
};

// Expected sums are what the tools that made the files say of them: tests/golden/README.md.
TEST_F(ImportTest, GoldenFilesHaveTheTotalsOfTheirOwnTools) {
  struct Row {
    const char* file;
    const char* backend;
    Found want;
  };
  for (const Row& row : {
           Row{"perf_fp.data", "import: perf.data", {29, 0, 29'029'029, 0}},
           Row{"perf_pipe.data", "import: perf.data", {10, 0, 20'040'080, 0}},
           Row{"perf_dwarf.data", "import: perf.data", {14, 8, 28'056'112, 41'838'467}},
           Row{"perf_script.txt", "import: perf-script", {17, 0, 17'017'017, 0}},
           Row{"go_cpu.pb.gz", "import: pprof", {5, 0, 50'000'000, 0}},
           Row{"go_block.pb.gz", "import: pprof", {0, 6, 0, 287'859'234}},
           Row{"gperftools.cpu", "import: gperftools-cpu", {14, 0, 140'000'000, 0}},
           Row{"stacks.folded", "import: folded", {100, 0, 100, 0}},
           Row{"evented.speedscope.json", "import: speedscope", {6, 0, 13'000'000, 0}},
       }) {
    auto outcome = import({golden(row.file)});
    ASSERT_TRUE(outcome) << row.file << ": " << outcome.error().text();
    EXPECT_EQ(found(), row.want) << row.file;
    EXPECT_EQ(read_back()->contents().info.backend, row.backend);
  }
}

// As go tool pprof says of them (-sample_index=inuse_space …).
TEST_F(ImportTest, GoldenHeapProfilesHaveTheTotalsOfGosReader) {
  struct Row {
    const char* file;
    model::HeapSum want;
  };
  for (const Row& row : {
           Row{"gperftools.heap", {{}, {}, 6'000'000, 101, 6'000'000, 101}},
           Row{"tcmalloc_sampled.heap", {{}, {}, 5'267'910, 1050, 5'267'910, 1050}},
           Row{"jemalloc.heap",
               {{}, {}, 21'034'365, 4070, 1'503'959'112, 306'207}},  // by jeprof's rule
           Row{"go_heap.pb.gz", {{}, {}, 4'562'337, 4, 5'086'689, 4100}},
           Row{"go_heap_debug1.txt", {{}, {}, 5'288'719, 2129, 235'026'566, 118'826}},
           Row{"libassay_heap_debug1.txt", {{}, {}, 14'516'142, 2903, 1'382'540'092, 291'251}},
       }) {
    auto outcome = import({golden(row.file)});
    ASSERT_TRUE(outcome) << row.file << ": " << outcome.error().text();
    EXPECT_EQ(found(), Found{}) << row.file << ": bytes are no time";
    auto reader = read_back();
    const run::Contents& run = reader->contents();
    EXPECT_TRUE(run.is_heap_alone()) << row.file;
    EXPECT_EQ(run.heap_sums.size(), outcome->heap_sums);
    model::HeapSum sum;
    for (const model::HeapSum& one : run.heap_sums) {
      sum.live_bytes += one.live_bytes;
      sum.live_objects += one.live_objects;
      sum.bytes += one.bytes;
      sum.objects += one.objects;
    }
    EXPECT_EQ(sum.live_bytes, row.want.live_bytes) << row.file;
    EXPECT_EQ(sum.live_objects, row.want.live_objects) << row.file;
    EXPECT_EQ(sum.bytes, row.want.bytes) << row.file;
    EXPECT_EQ(sum.objects, row.want.objects) << row.file;
  }
}

TEST_F(ImportTest, AHeapProfileBesideACpuProfileIsKeptApart) {
  ASSERT_TRUE(import({golden("go_cpu.pb.gz"), golden("go_heap.pb.gz")}));
  EXPECT_EQ(found(), (Found{5, 0, 50'000'000, 0}));
  auto reader = read_back();
  EXPECT_TRUE(reader->contents().has_heap);
  EXPECT_FALSE(reader->contents().is_heap_alone());
}

TEST_F(ImportTest, WhatTheSourceDoesNotKnowIsNoted) {
  ASSERT_TRUE(import({golden("stacks.folded")}));
  std::string topics;
  auto reader = read_back();
  for (const auto& note : reader->contents().notes) topics += note.topic + ' ';
  EXPECT_NE(topics.find("times"), topics.npos) << topics;
  EXPECT_NE(topics.find("waits"), topics.npos) << topics;
  EXPECT_NE(topics.find("unit"), topics.npos) << topics;
}

// perf ran sh, which is a link to dash.
TEST_F(ImportTest, ProcessesOfPerfDataAreCalledAsTheyCalledThemselves) {
  for (const char* file : {"perf_fp.data", "perf_dwarf.data", "perf_pipe.data"}) {
    ASSERT_TRUE(import({golden(file)}));
    auto reader = read_back();
    ASSERT_FALSE(reader->contents().processes.empty());
    const model::Process& process = reader->contents().processes[0];
    EXPECT_EQ(model::process_name(process), "sh") << file;
    EXPECT_EQ(process.exe, "/usr/bin/dash") << file;
    EXPECT_EQ(process.role, "sh") << file;
  }
}

TEST_F(ImportTest, SeveralFilesMerge) {
  ImportOptions options;
  options.inputs = {golden("gperftools.cpu"), golden("stacks.folded")};
  options.output = scratch_.file("run.assay");
  options.symbolize = false;
  options.read.period_ns = 10'000'000;
  ASSERT_TRUE(import_files(options));
  EXPECT_EQ(found(), (Found{114, 0, 1'140'000'000, 0}));
  EXPECT_EQ(read_back()->contents().processes.size(), 2u);
}

TEST_F(ImportTest, WhatDoesNotAddUpIsNotMerged) {
  auto outcome = import({golden("gperftools.cpu"), golden("stacks.folded")});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().what.find("stacks.folded has samples: they do not add up"),
            std::string::npos)
      << outcome.error().what;
  EXPECT_TRUE(import({golden("stacks.folded"), golden("stacks.folded")}));
}

TEST_F(ImportTest, WhatCannotBeAnInputIsSaidToBe) {
  auto error = [&](const std::vector<std::string>& inputs) {
    auto outcome = import(inputs);
    return outcome ? "" : outcome.error().text();
  };
  EXPECT_NE(error({"-", "-"}).find("only once"), std::string::npos);
  std::string tls = error({"https://127.0.0.1:1/x"});
  EXPECT_NE(tls.find("TLS is not supported"), std::string::npos) << tls;
  EXPECT_NE(tls.find("curl -sS 'https://127.0.0.1:1/x' | assay import -"), std::string::npos);
  ASSERT_TRUE(import({golden("stacks.folded")}));
  std::filesystem::copy(scratch_.file("run.assay"), scratch_.file("other.assay"));
  EXPECT_NE(error({scratch_.file("other.assay")}).find("is a run already"), std::string::npos);
}

TEST_F(ImportTest, ABrokenFileLeavesNothingBehind) {
  std::ofstream(scratch_.file("broken.folded")) << "a;b 1\nnonsense\n";
  auto outcome = import({golden("stacks.folded"), scratch_.file("broken.folded")});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().what.find("broken.folded: a line without a value at offset 6"),
            std::string::npos);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch_.path()))
    ++files;
  EXPECT_EQ(files, 1) << "only the broken input";
}

TEST_F(ImportTest, WhatIsEmptyOrUnknownIsSaidToBe) {
  auto what = [&](const std::string& bytes) {
    std::ofstream(scratch_.file("input"), std::ios::binary) << bytes;
    auto outcome = import({scratch_.file("input")});
    return outcome ? "" : outcome.error().what;
  };
  EXPECT_EQ(what(""), scratch_.file("input") + " is empty: there is nothing to import");
  EXPECT_EQ(what(*formats::gzip("")), what(""));
  EXPECT_EQ(what("no profile"),
            scratch_.file("input") + ": no format that Assay reads was recognised at offset 0");
  EXPECT_EQ(what(*formats::gzip(std::string(50 << 20, '\0'))), what("no profile"));
}

TEST_F(ImportTest, WhatWaitsIsSaidOnlyOfFilesThatDoNotSayIt) {
  ImportOptions options;
  options.output = scratch_.file("run.assay");
  options.read.meaning = formats::Meaning::off;
  options.inputs = {golden("stacks.folded")};
  ASSERT_TRUE(import_files(options));
  EXPECT_EQ(found(), (Found{0, 100, 0, 100}));
  options.overwrite = true;
  options.inputs = {golden("go_cpu.pb.gz")};
  auto refused = import_files(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("--as is for folded"), std::string::npos);
}

TEST_F(ImportTest, TruncatedAndFlippedPerfDataIsRefusedOrRead) {
  std::ifstream file(golden("perf_dwarf.data"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (size_t cut : {10u, 100u, 500u, 3000u}) {
    std::ofstream(scratch_.file("cut.data"), std::ios::binary) << bytes.substr(0, cut);
    auto outcome = import({scratch_.file("cut.data")});
    ASSERT_FALSE(outcome) << cut;
    EXPECT_NE(outcome.error().what.find("cut.data"), std::string::npos);
    EXPECT_NE(outcome.error().what.find("offset"), std::string::npos) << outcome.error().what;
  }
}

TEST_F(ImportTest, TheOutputIsNeverAnInputAndNeverOverwrittenUnasked) {
  ImportOptions options;
  options.inputs = {golden("stacks.folded")};
  options.output = scratch_.file("here");
  std::ofstream(options.output) << "mine";
  EXPECT_FALSE(import_files(options));
  options.inputs = {options.output};
  options.overwrite = true;
  EXPECT_FALSE(import_files(options));
}

// Answers one request on loopback with the given bytes.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) {
    thread_ = std::thread([this, answer = std::move(answer)] {
      UniqueFd client(::accept(listener_.fd(), nullptr, nullptr));
      char request[4096];
      if (::recv(client.get(), request, sizeof request, 0) <= 0) return;
      (void)!::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
  }
  ~OneAnswer() { thread_.join(); }
  std::string url(const std::string& path) const {
    return fmt::format("http://127.0.0.1:{}{}", listener_.port(), path);
  }

 private:
  LoopbackListener listener_;
  std::thread thread_;
};

TEST_F(ImportTest, ProfilesComeFromAUrl) {
  std::ifstream file(golden("go_cpu.pb.gz"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  OneAnswer server(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.size()) +
                   bytes);
  auto outcome = import({server.url("/debug/pprof/profile?seconds=0")});
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(found().cpu_ns, 50'000'000);
}

TEST(HttpGet, ChunksAreJoinedAndFailuresTold) {
  {
    OneAnswer server(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    auto got = http_get(server.url("/"), 1000);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(*got, "abcde");
  }
  {
    OneAnswer server("HTTP/1.1 404 Not Found\r\n\r\nno");
    auto got = http_get(server.url("/x"), 1000);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().what.find("404 Not Found"), std::string::npos);
  }
  {
    OneAnswer server("HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'x'));
    EXPECT_FALSE(http_get(server.url("/x"), 1000)) << "more than was allowed";
  }
  EXPECT_FALSE(http_get("http://", 1000));
}

}  // namespace
}  // namespace assay::session
