// What a Firefox profile adds up to is what the run and the other formats say.
#include "formats/firefox/write_firefox.h"

#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "formats/export/export_fixture.h"
#include "formats/gzip.h"
#include "formats/pprof/profile_message.h"

namespace assay::formats {
namespace {

struct ThreadSums {
  int64_t samples = 0, weight_ns = 0, cpu_delta_ns = 0, waits = 0, wait_ns = 0;
  bool operator==(const ThreadSums&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ThreadSums& s) {
  return out << s.samples << " samples, " << s.weight_ns << " ns by weight, " << s.cpu_delta_ns
             << " ns by CPU deltas, " << s.waits << " waits, " << s.wait_ns << " ns";
}
using ByThread = std::map<int64_t, ThreadSums>;  // by tid

int64_t ns_of(const nlohmann::json& ms) {
  return std::llround(ms.get<double>() * 1e6);
}

ByThread firefox_sums(const std::string& text) {
  ByThread sums;
  auto profile = nlohmann::json::parse(text);
  EXPECT_EQ(profile["meta"]["sampleUnits"]["threadCPUDelta"], "ns");
  for (const auto& thread : profile["threads"]) {
    ThreadSums& row = sums[thread["tid"].get<int64_t>()];
    const auto &samples = thread["samples"], &markers = thread["markers"];
    EXPECT_EQ(samples["weightType"], "tracing-ms");
    row.samples += samples["length"].get<int64_t>();
    for (const auto& weight : samples["weight"]) row.weight_ns += ns_of(weight);
    for (const auto& delta : samples["threadCPUDelta"]) row.cpu_delta_ns += delta.get<int64_t>();
    row.waits += markers["length"].get<int64_t>();
    for (size_t i = 0; i < markers["startTime"].size(); ++i) {
      row.wait_ns += ns_of(markers["endTime"][i]) - ns_of(markers["startTime"][i]);
    }
    for (const char* column : {"stack", "time", "weight", "threadCPUDelta"}) {
      EXPECT_EQ(samples[column].size(), samples["length"]) << column;
    }
    for (const char* column : {"data", "name", "startTime", "endTime", "phase", "category"}) {
      EXPECT_EQ(markers[column].size(), markers["length"]) << column;
    }
  }
  return sums;
}

ByThread pprof_sums(const std::string& packed) {
  ByThread sums;
  auto plain = gunzip(packed, 1 << 26);
  EXPECT_TRUE(plain);
  Input input = Input::of_bytes("test", *plain);
  auto profile = decode_profile(input);
  EXPECT_TRUE(profile);
  for (const auto& [bytes, offset] : profile->samples) {
    ProfileSample sample;
    EXPECT_TRUE(decode_sample(*profile, bytes, sample));
    int64_t tid = 0;
    for (const auto& label : sample.labels) tid = label.key == "tid" ? label.number : tid;
    ThreadSums& row = sums[tid];
    for (size_t i = 0; i < profile->types.size(); ++i) {
      std::string_view type = profile->types[i].type;
      if (type == "samples") row.samples += sample.values[i];
      if (type == "cpu") row.weight_ns = row.cpu_delta_ns += sample.values[i];
      if (type == "waits") row.waits += sample.values[i];
      if (type == "off") row.wait_ns += sample.values[i];
    }
  }
  return sums;
}

// Uneven weights and times: sums that are right only to a microsecond would show.
void add_uneven(analysis::FakeRun& run) {
  auto stack = run.stack({"_start", "main", "serve|parse"});
  auto wait = run.stack({"_start", "main", "libc.so.6:epoll_wait", "k:ep_poll"});
  for (int i = 0; i < 1000; ++i) {
    model::ThreadId thread{static_cast<uint32_t>(i % 3)};
    run.add_sample(thread, stack, 1'000'003 * i + 1, 999'983 + 7 * (i % 11));
    run.add_wait(thread, wait, 1'000'003 * i + 500'001, 100'003 + 13 * (i % 17),
                 {model::WaitFlag::runqueue_known})
        .runqueue_ns = i;
  }
}

TEST(Firefox, TotalsOfEveryThreadAreThoseOfTheRunAndOfPprof) {
  analysis::FakeRun run;
  fill_server(run);
  add_uneven(run);
  ByThread got = firefox_sums(exported(run, find_format("firefox")));
  EXPECT_EQ(got, pprof_sums(exported(run, find_format("pprof"))));
  ASSERT_EQ(got.size(), 3u);
  for (const auto& [tid, sums] : got) {
    Selection selection;
    selection.thread = std::to_string(tid);
    Sums want = sums_of(run, selection);
    EXPECT_EQ(sums, (ThreadSums{want.samples, want.cpu, want.cpu, want.waits, want.off})) << tid;
    EXPECT_GT(sums.cpu_delta_ns, 300 * kNsPerMs);
    EXPECT_GT(sums.wait_ns, 30 * kNsPerMs);
  }
}

TEST(Firefox, TotalsOfAPartAreThoseOfThePart) {
  analysis::FakeRun run;
  fill_server(run);
  add_uneven(run);
  ExportOptions options;
  options.selection.from_ns = 123'456'789;
  options.selection.to_ns = 456'789'012;
  options.selection.thread = "pool";
  options.format = find_format("firefox");
  ByThread got = firefox_sums(exported(run, options));
  EXPECT_EQ(got.size(), 2u);
  options.format = find_format("pprof");
  EXPECT_EQ(got, pprof_sums(exported(run, options)));
}

TEST(Firefox, OfTooManyWaitsTheLongestAreMarkers) {
  analysis::FakeRun run;
  run.edit().info.window_end_ns = 100 * kNsPerSecond;
  model::ThreadId thread = run.add_thread(run.add_process(1, "/opt/server"), 1, "server");
  auto stack = run.stack({"main", "k:futex_wait"});
  int64_t most = kFirefoxMarkersPerThread, longest = 0;
  for (int64_t i = 0; i < most + 500; ++i) {
    int64_t length = 1000 + i * 7919 % (most + 500);  // every length once
    run.add_wait(thread, stack, i * kNsPerMs, length);
    if (length >= 1500) longest += length;
  }
  ByThread got = firefox_sums(exported(run, find_format("firefox")));
  EXPECT_EQ(got[1], (ThreadSums{0, 0, 0, most, longest}));
}

}  // namespace
}  // namespace assay::formats
