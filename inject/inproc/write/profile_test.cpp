// Profiles end to end without a server: names, merging, deltas, both formats.
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <zlib.h>

#include "assay/assay.h"
#include "inject/inproc/cpu/collect.h"
#include "inject/inproc/cpu/cpu_profiler.h"
#include "inject/inproc/write/write_gperftools.h"
#include "inject/inproc/write/write_pprof.h"

namespace assay::inproc {
namespace {

__attribute__((noinline)) int a_function_with_a_name(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}

uintptr_t inside(int (*function)(int)) {
  return reinterpret_cast<uintptr_t>(function) + 1;
}

std::string unzip(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(ResolveNames, FindsTheFunctionAndItsModule) {
  Arena arena;
  ModuleMap modules;
  ASSERT_TRUE(modules.read(arena));
  CodeAddress wanted[3];
  wanted[0].address = inside(a_function_with_a_name);
  wanted[1].address = 12345;
  wanted[2].address = inside(a_function_with_a_name);
  size_t count = sort_addresses(wanted, 3);
  ASSERT_EQ(count, 2U);
  resolve_names(wanted, count, modules, arena);
  const CodeAddress* found = find_address(wanted, count, inside(a_function_with_a_name));
  ASSERT_NE(found, nullptr);
  ASSERT_NE(found->name, nullptr);
  EXPECT_NE(std::strstr(found->name, "a_function_with_a_name(int)"), nullptr) << found->name;
  EXPECT_EQ(found->function_start, reinterpret_cast<uintptr_t>(a_function_with_a_name));
  ASSERT_NE(found->module, nullptr);
  EXPECT_STREQ(found->module->path, program_path(arena));
  EXPECT_EQ(find_address(wanted, count, 12345)->name, nullptr);
}

TEST(Profile, MergesEqualStacksAndSubtracts) {
  Arena arena;
  uintptr_t a[] = {1, 2}, b[] = {1, 2}, c[] = {3};
  ProfileSample earlier_samples[] = {{a, 2, 0, {1, 10}}, {c, 1, 0, {5, 50}}};
  ProfileSample later_samples[] = {{b, 2, 0, {4, 40}}, {c, 1, 0, {5, 50}}, {a, 2, 9, {1, 1}}};
  Profile earlier, later;
  earlier.samples = earlier_samples;
  earlier.count = 2;
  later.samples = later_samples;
  later.count = 3;
  later.time_ns = 100;
  earlier.time_ns = 40;
  ASSERT_TRUE(subtract_profile(earlier, later, arena));
  ASSERT_EQ(later.count, 2U);  // unchanged rows are removed
  EXPECT_EQ(later.duration_ns, 60);
  int64_t plain = 0, labelled = 0;
  for (size_t i = 0; i < later.count; ++i)
    (later.samples[i].label == 0 ? plain : labelled) += later.samples[i].values[1];
  EXPECT_EQ(plain, 30);
  EXPECT_EQ(labelled, 1);
}

TEST(WritePprof, HasNamesTypesAndBuildIds) {
  Arena arena;
  uintptr_t stack[] = {inside(a_function_with_a_name), inside(a_function_with_a_name)};
  ProfileSample samples[] = {{stack, 2, 0, {3, 30}}};
  Profile profile;
  profile.samples = samples;
  profile.count = 1;
  profile.types[0] = {"samples", "count"};
  profile.types[1] = {"cpu", "nanoseconds"};
  profile.type_count = 2;
  ByteBuffer out;
  ASSERT_TRUE(write_pprof(profile, arena, out));
  std::string text = unzip(out.view());
  for (const char* expected : {"a_function_with_a_name", "samples", "nanoseconds", "cpu"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected;
  EXPECT_NE(text.find(program_path(arena)), std::string::npos);
}

TEST(CpuProfiler, SeesWhereTimeGoesAndOnlyOneAtATime) {
  CpuPlan plan;
  plan.hz = 1000;
  ASSERT_EQ(start_cpu_profile(plan), nullptr);
  EXPECT_STREQ(start_cpu_profile(plan), "cpu profiling already in use");
  std::atomic<bool> done = false;
  std::thread worker([&] {
    while (!done) a_function_with_a_name(1);
  });
  // On a busy machine CPU time comes late: wait for the samples, not for the clock.
  CpuResult result;
  int64_t begin_ns = monotonic_ns();
  timespec pause{0, 20'000'000};
  while (monotonic_ns() - begin_ns < 400'000'000) nanosleep(&pause, nullptr);
  done = true;
  worker.join();
  ASSERT_TRUE(stop_cpu_profile(result));
  EXPECT_STREQ(start_cpu_profile(plan), "cpu profiling already in use");
  Arena arena;
  Profile profile;
  ASSERT_TRUE(make_cpu_profile(result, arena, profile));
  int64_t samples = 0;
  for (size_t i = 0; i < profile.count; ++i) samples += profile.samples[i].values[0];
  EXPECT_GT(samples, 3);
  ByteBuffer words;
  EXPECT_TRUE(write_gperftools_cpu(result, words));
  finish_cpu_profile();
  CpuResult again;
  EXPECT_FALSE(stop_cpu_profile(again));
  uintptr_t head[5];
  ASSERT_GT(words.size(), sizeof head);
  std::memcpy(head, words.data(), sizeof head);
  EXPECT_EQ(head[1], 3U);
  EXPECT_EQ(head[3], 1000U);
}

TEST(Api, FailuresSayWhy) {
  char text[256];
  EXPECT_LT(assay_cpu_stop(nullptr), 0);
  EXPECT_STREQ(assay_last_error(text, sizeof text), "no CPU profile is running");
  ASSERT_EQ(assay_cpu_start(100), 0);
  EXPECT_LT(assay_cpu_start(100), 0);
  assay_output output{};
  output.file = "/nonexistent/folder/file";
  EXPECT_LT(assay_cpu_stop(&output), 0);
  EXPECT_NE(std::strstr(assay_last_error(text, sizeof text), "/nonexistent/folder/file"), nullptr);
  EXPECT_LT(assay_serve("0.0.0.0:0", ""), 0);
  EXPECT_NE(std::strstr(assay_last_error(text, sizeof text), "token"), nullptr);
  int port = assay_serve("127.0.0.1:0", "");
  EXPECT_GT(port, 0);
  EXPECT_LT(assay_serve("127.0.0.1:0", ""), 0);
  assay_serve_stop();
}

}  // namespace
}  // namespace assay::inproc
