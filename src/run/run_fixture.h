// Shared by the tests of this room: a scratch directory and a small run with one of everything.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"
#include "run/reader.h"
#include "run/writer.h"

namespace assay::run {

class ScratchDirectory {
 public:
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  // In memory: thousands of damaged copies are written.
  TemporaryDirectory directory_{TemporaryDirectory::Where::memory};
  std::filesystem::path path_ = directory_.path();
};

inline constexpr TimeNs kFixtureBegin = 5'000 * kNsPerSecond;
inline constexpr uint32_t kFixtureThreads = 6;
inline constexpr uint32_t kFixtureStacks = 40;

inline model::RunInfo fixture_info() {
  model::RunInfo info;
  info.assay_version = "0.1.0";
  info.backend = "perf_event";
  info.target = "--port 8000";
  info.command_line = "assay record --port 8000";
  info.oncpu_event = "cpu-clock";
  info.sample_period_ns = 10'101'010;
  info.window_begin_ns = kFixtureBegin;
  info.utc_begin_ns = 1'700'000'000 * kNsPerSecond;
  return info;
}

// Two processes of three threads, three modules, ten frames and kFixtureStacks stacks.
inline void add_fixture_tables(Writer& writer) {
  for (uint32_t i = 0; i < 2; ++i) {
    model::Process process;
    process.id = {i};
    process.pid = static_cast<pid_t>(100 + i * 10);
    process.parent_pid = i == 0 ? 1 : 100;
    process.exe = "/usr/bin/server";
    process.comm = "server";
    process.cmdline = "server --port 8000";
    process.role = i == 0 ? "main" : "worker 0";
    process.build_id = "abcd";
    process.cgroup = "/system.slice";
    process.begin_ns = kFixtureBegin;
    if (i == 1) process.end_ns = kFixtureBegin + 7;
    writer.put_process(process);
  }
  for (uint32_t i = 0; i < kFixtureThreads; ++i) {
    model::Thread thread;
    thread.id = {i};
    thread.process = {i / 3};
    thread.tid = static_cast<pid_t>(100 + i / 3 * 10 + i % 3);
    thread.name = "pool-" + std::to_string(i);
    thread.pool = "pool-*";
    thread.begin_ns = kFixtureBegin;
    writer.put_thread(thread);
  }
  writer.add_module({{0}, model::ModuleKind::kernel, "[kernel]", ""});
  writer.add_module({{1}, model::ModuleKind::elf, "/usr/bin/server", "abcd"});
  writer.add_module({{2}, model::ModuleKind::marker, "[assay]", ""});
  writer.add_mapping({0}, {0x1000, 0x9000, 0x200, {1}}, kFixtureBegin);
  for (uint32_t i = 0; i < 10; ++i) {
    model::Frame frame{{i == 0 ? 2u : 1u}, i == 0 ? 1u : 0x1000u + i * 16};
    if (i == 9) frame = {{0}, 0xffffffff81000000ull};
    writer.add_frame({i}, frame);
  }
  for (uint32_t i = 1; i <= kFixtureStacks; ++i) {
    writer.add_stack({i}, {{i / 2}, {i % 10}});
  }
  std::vector<model::Location> names{{"inner(int)", "_Z5inneri", "server.cc", 12, 10, true},
                                     {"outer()", "_Z5outerv", "server.cc", 40, 30, false}};
  writer.put_locations({3}, names);
  writer.put_locations({4}, std::vector<model::Location>{{"main", "", "main.cc", 5, 1, false}});
  writer.put_data_name({{0}, 0x5000, "table_mutex"});
  writer.put_source_line("server.cc", 12, "  return x * 2;");
  writer.add_fact({"host", "kernel", "6.1"});
  writer.add_note({"rings", "small rings", "ulimit -l unlimited"});
  writer.add_series(
      {{0}, model::SeriesScope::process, model::SeriesKind::cumulative, 1, "utime", "ns", ""});
  writer.add_loss({model::LossKind::ring_records, 1, kFixtureBegin + 5, 17});
}

// Plausible rows of one second: threads take turns at waiting and running.
struct FixtureRows {
  std::vector<model::Sample> samples;
  std::vector<model::Wait> waits;
};
inline FixtureRows fixture_rows(int second, int waits_per_thread, uint32_t seed) {
  std::mt19937_64 random(seed + static_cast<uint32_t>(second) * 7919u);
  FixtureRows rows;
  for (uint32_t thread = 0; thread < kFixtureThreads; ++thread) {
    TimeNs now = kFixtureBegin + second * kNsPerSecond;
    for (int i = 0; i < waits_per_thread; ++i) {
      now += 1 + static_cast<TimeNs>(random() % 50'000);
      model::Wait wait;
      wait.start = now;
      wait.duration_ns = static_cast<int64_t>(random() % 100'000);
      wait.runqueue_ns = wait.duration_ns / 7;
      wait.wakeup_ns = wait.duration_ns / 11;
      wait.thread = {thread};
      wait.stack = {static_cast<uint32_t>(1 + random() % kFixtureStacks)};
      wait.set(model::WaitFlag::runqueue_known);
      wait.syscall = 202;
      wait.arg = 0x7f0000001000 + random() % 4 * 64;
      if (random() % 8 == 0) {
        wait.flags = static_cast<uint16_t>(model::WaitFlag::preempted);
        wait.runqueue_ns = wait.duration_ns;
        wait.wakeup_ns = 0;
        wait.syscall = model::kNoSyscall;
        wait.arg = 0;
      } else if (random() % 4 == 0) {
        wait.syscall = 0;
        wait.fd_kind = model::FdKind::socket_stream;
        wait.arg = 5 + random() % 20;
        wait.waker = {static_cast<uint32_t>(random() % kFixtureThreads)};
        wait.waker_stack = {static_cast<uint32_t>(random() % kFixtureStacks)};
        wait.owner = {static_cast<uint32_t>(random() % kFixtureThreads)};
      }
      rows.waits.push_back(wait);
      now += wait.duration_ns;
      if (i % 10 == 0) {
        rows.samples.push_back(
            {now + 10, {thread}, {1 + thread}, 10'101'010, static_cast<uint16_t>(random() % 4)});
      }
    }
  }
  return rows;
}

// A finished run of `seconds` seconds at `path`.
inline void write_fixture_run(const std::string& path, int seconds = 2,
                              int waits_per_thread = 100) {
  auto writer = Writer::create(path, fixture_info(), true);
  ASSERT_TRUE(writer) << writer.error().text();
  add_fixture_tables(**writer);
  for (int second = 0; second < seconds; ++second) {
    FixtureRows rows = fixture_rows(second, waits_per_thread, 1);
    for (const model::Sample& sample : rows.samples) (*writer)->add_sample(sample);
    for (const model::Wait& wait : rows.waits) (*writer)->add_wait(wait);
    TimeNs now = kFixtureBegin + (second + 1) * kNsPerSecond;
    (*writer)->add_point({{0}, now, second * 1'000});
    auto flushed = (*writer)->flush(now);
    ASSERT_TRUE(flushed) << flushed.error().text();
  }
  model::RunInfo info = fixture_info();
  info.window_end_ns = kFixtureBegin + seconds * kNsPerSecond;
  info.end_reason = "time";
  auto finished = (*writer)->finish(info);
  ASSERT_TRUE(finished) << finished.error().text();
}

}  // namespace assay::run
