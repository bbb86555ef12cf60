// Load beside a capture, without a capture: the process, its group, and what goes into the run.
#include "session/load/load_driver.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"
#include "run/reader.h"

namespace assay::session {
namespace {

class LoadIntoRun : public testing::Test {
 protected:
  void SetUp() override {
    info_.window_begin_ns = 100 * kNsPerSecond;
    auto writer = run::Writer::create(dir_ + "/run.assay", info_, false);
    ASSERT_TRUE(writer) << writer.error().what;
    writer_ = std::move(*writer);
  }

  std::unique_ptr<run::Reader> finish(TimeNs window_end) {
    info_.window_end_ns = window_end;
    info_.finished = true;
    auto finished = writer_->finish(info_);
    EXPECT_TRUE(finished) << finished.error().what;
    writer_.reset();
    auto reader = run::Reader::open(dir_ + "/run.assay");
    EXPECT_TRUE(reader);
    return reader ? std::move(*reader) : nullptr;
  }
  static std::string fact(const run::Reader& reader, const std::string& key) {
    for (const model::Fact& each : reader.contents().facts) {
      if (each.scope == "load" && each.key == key) return each.value;
    }
    return "(none)";
  }
  static std::vector<int64_t> values(const run::Reader& reader, const std::string& name) {
    std::vector<int64_t> all;
    for (const model::Series& series : reader.contents().series) {
      if (series.scope != model::SeriesScope::load || series.name != name) continue;
      auto points = reader.points(series.id);
      for (const model::Point& point : *points) all.push_back(point.value);
    }
    return all;
  }

  TemporaryDirectory scratch_;
  std::string dir_ = scratch_.path();
  model::RunInfo info_;
  std::unique_ptr<run::Writer> writer_;
  std::atomic<uint32_t> next_series_{0};
};

load::TickLine tick(TimeNs end, uint64_t ok, uint64_t failed) {
  load::TickLine line;
  line.end = end;
  line.ok = ok;
  line.failed = failed;
  line.cpu_ns = 10 * kNsPerMs;
  for (uint64_t i = 0; i < ok; ++i) line.latency.record(2 * kNsPerMs);
  return line;
}

TEST_F(LoadIntoRun, TicksBecomeSeriesAndFacts) {
  LoadWindow window;
  TimeNs begin = info_.window_begin_ns;
  window.add_tick(tick(begin - 100 * kNsPerMs, 999, 0));  // of the warm-up
  window.add_tick(tick(begin, 1, 0));
  window.begin(*writer_, next_series_, false, begin);
  for (int i = 1; i <= 25; ++i)
    window.add_tick(tick(begin + i * 100 * kNsPerMs, 100, i == 1 ? 50 : 0));
  window.close();
  window.add_tick(tick(begin + 10 * kNsPerSecond, 12345, 0));  // too late to count
  LoadFacts facts;
  facts.what = "http://h/";
  facts.ended = "covered";
  facts.plan = {true, 8, 2, 1000};
  window.finish(facts, begin, begin + 2500 * kNsPerMs);

  auto reader = finish(begin + 2500 * kNsPerMs);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(values(*reader, "requests"), (std::vector<int64_t>{1000, 2050, 3050, 3550}));
  EXPECT_EQ(values(*reader, "errors"), (std::vector<int64_t>{0, 50, 50, 50}));
  EXPECT_EQ(values(*reader, "latency_max").size(), 3U);
  ASSERT_EQ(values(*reader, "generator_cpu").size(), 4U);
  EXPECT_EQ(values(*reader, "generator_cpu").back(), 27 * 10 * kNsPerMs);
  EXPECT_EQ(fact(*reader, "requests"), "2550");
  EXPECT_EQ(fact(*reader, "errors"), "50");
  EXPECT_EQ(fact(*reader, "throughput_per_s"), "1000.000");
  EXPECT_EQ(fact(*reader, "mode"), "open");
  EXPECT_EQ(fact(*reader, "connections"), "8");
  EXPECT_EQ(fact(*reader, "generator_saturated"), "no");
  EXPECT_EQ(fact(*reader, "ended"), "covered");
  ASSERT_EQ(reader->contents().notes.size(), 1U);  // 2 % of the requests failed
}

TEST_F(LoadIntoRun, TheFirstPointStandsWhereItsCountsAreOf) {
  LoadWindow window;
  TimeNs begin = info_.window_begin_ns;
  window.add_tick(tick(begin - 60 * kNsPerMs, 500, 0));
  window.begin(*writer_, next_series_, false, begin);
  for (int i = 1; i <= 20; ++i)
    window.add_tick(tick(begin - 60 * kNsPerMs + i * 100 * kNsPerMs, 100, 0));
  window.finish({}, begin, begin + 2 * kNsPerSecond);
  auto reader = finish(begin + 2 * kNsPerSecond);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(fact(*reader, "throughput_per_s"), "1000.000");
  EXPECT_EQ(values(*reader, "requests"), (std::vector<int64_t>{500, 1500, 2500}));
  for (const model::Series& series : reader->contents().series) {
    if (series.name != "requests") continue;
    auto points = reader->points(series.id);
    ASSERT_TRUE(points);
    EXPECT_EQ(points->front().time, begin - 60 * kNsPerMs);
  }
}

TEST_F(LoadIntoRun, ACommandIsRestartedAndItsGroupEnds) {
  LoadRequest request;
  request.what = "sleep 1000 & echo pid $!; sleep 0.25";
  auto driver = LoadDriver::create(request);
  ASSERT_TRUE(driver);
  ASSERT_TRUE((*driver)->start());
  TimeNs begin = monotonic_ns();
  (*driver)->begin_window(*writer_, next_series_, begin);
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE((*driver)->poll(monotonic_ns()));
    usleep(10'000);
  }
  (*driver)->end_window(begin, monotonic_ns());
  auto reader = finish(monotonic_ns());
  EXPECT_EQ(fact(*reader, "kind"), "command");
  EXPECT_EQ(fact(*reader, "ended"), "covered");
  EXPECT_GE(std::stoi(fact(*reader, "restarts")), 1);
  // Every `sleep 1000` that it told of has ended; a zombie, until its new parent reaps it, counts.
  std::string output = fact(*reader, "output");
  size_t found = 0;
  for (size_t at = output.find("pid "); at != output.npos; at = output.find("pid ", at + 1)) {
    ++found;
    pid_t pid = std::stoi(output.substr(at + 4));
    bool gone = false;
    for (int i = 0; i < 200 && !gone; ++i) {
      auto stat = os::ProcFs().stat(pid);
      gone = !stat || stat->state == 'Z' || stat->state == 'X' || stat->comm != "sleep";
      if (!gone) usleep(10'000);
    }
    EXPECT_TRUE(gone) << pid;
  }
  EXPECT_GE(found, 2U);
}

TEST(LoadDriver, ACommandThatFailsAtOnceIsGivenUp) {
  LoadRequest request;
  request.what = "echo went wrong; exit 3";
  auto driver = LoadDriver::create(request);
  ASSERT_TRUE(driver);
  ASSERT_TRUE((*driver)->start());
  bool going = true;
  for (int i = 0; i < 1000 && going; ++i) {
    going = (*driver)->poll(monotonic_ns());
    usleep(5'000);
  }
  EXPECT_FALSE(going);
  EXPECT_EQ((*driver)->fault(), "ended with exit status 3: went wrong");
}

TEST(LoadDriver, WhatMakesNoSense) {
  auto refused = [](const char* what, const char* ready) {
    LoadRequest request;
    request.what = what;
    request.ready_url = ready;
    return !LoadDriver::create(request);
  };
  EXPECT_FALSE(refused("http://h/", ""));
  EXPECT_FALSE(refused("wrk -c 5", "http://h/health -H 'A: b'"));
  EXPECT_TRUE(refused("http://h:0/", ""));
  EXPECT_TRUE(refused("http://h/ -H 'A: b", ""));
  EXPECT_TRUE(refused("wrk", "nonsense"));
}

TEST_F(LoadIntoRun, LoadThatEndedEarlyIsNoted) {
  LoadWindow window;
  TimeNs begin = info_.window_begin_ns;
  window.begin(*writer_, next_series_, true, begin);
  window.set_group_cpu(begin + kNsPerSecond, 300 * kNsPerMs);
  window.set_group_cpu(begin + 2 * kNsPerSecond, 100 * kNsPerMs);  // a process has ended: not less
  LoadFacts facts;
  facts.command = true;
  facts.what = "wrk";
  facts.ended = "early: it ended with exit status 1";
  facts.output = "oops";
  window.finish(facts, begin, begin + 3 * kNsPerSecond);
  auto reader = finish(begin + 3 * kNsPerSecond);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(values(*reader, "generator_cpu"),
            (std::vector<int64_t>{0, 300 * kNsPerMs, 300 * kNsPerMs, 300 * kNsPerMs}));
  EXPECT_TRUE(values(*reader, "requests").empty()) << "a command does not tell them";
  EXPECT_EQ(fact(*reader, "generator_cpu_share"), "0.1000");
  EXPECT_EQ(fact(*reader, "output"), "oops");
  ASSERT_EQ(reader->contents().notes.size(), 1U);
  EXPECT_EQ(reader->contents().notes[0].text,
            "the load did not cover the capture (early: it ended with exit status 1)");
}

TEST_F(LoadIntoRun, WithoutAWindowNothingIsWritten) {
  LoadWindow window;
  window.add_tick(tick(info_.window_begin_ns, 5, 1));
  window.finish({}, info_.window_begin_ns, info_.window_begin_ns);
  EXPECT_EQ(window.ok_so_far(), 5U);
  EXPECT_EQ(window.ok_in_window(), 0U);
  auto reader = finish(info_.window_begin_ns);
  EXPECT_TRUE(reader->contents().series.empty());
  EXPECT_EQ(fact(*reader, "kind"), "(none)");
}

TEST(LoadDriver, AServerThatIsGoneIsNotWaitedFor) {
  LoadRequest request;
  request.what = "sleep 600";
  request.ready_port = 9;
  auto driver = LoadDriver::create(request);
  ASSERT_TRUE(driver);
  std::atomic<bool> stop{false};
  int waited = 0;
  auto ready = (*driver)->wait_until_ready(
      stop, [&] { return waited > 2; }, [&] { ++waited; });
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.error().what.find("ended before it answered"), std::string::npos)
      << ready.error().what;
}

TEST(LoadProcess, WhatItReportsIsReadWithoutWaiting) {
  auto process = LoadProcess::start([](int fd) {
    return std::vector<std::string>{"/bin/sh", "-c", fmt::format("echo hello >&{}; sleep 600", fd)};
  });
  ASSERT_TRUE(process);
  std::string text;
  for (int i = 0; i < 1000 && text.empty(); ++i) {
    text = process->read();
    usleep(5'000);
  }
  EXPECT_EQ(text, "hello\n");
  EXPECT_EQ(process->read(), "") << "nothing more, and it did not wait";
  EXPECT_FALSE(process->poll());
  pid_t pid = process->pid();
  LoadProcess moved = std::move(*process);
  EXPECT_EQ(moved.pid(), pid);
  moved.stop();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(LoadProcess, CpuTimeOfAGroup) {
  auto process = LoadProcess::start([](int) {
    return std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"};
  });
  ASSERT_TRUE(process);
  int64_t cpu = 0;
  for (int i = 0; i < 1000 && cpu == 0; ++i) {
    usleep(10'000);
    cpu = group_cpu_ns(os::ProcFs(), process->pid());
  }
  EXPECT_GT(cpu, 0);
  process->stop();
}

}  // namespace
}  // namespace assay::session
