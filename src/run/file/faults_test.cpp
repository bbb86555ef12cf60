// The disk of a capture fails, fills up or loses power at every single step; the run must open.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "run/file/testing/faulty_disk.h"
#include "run/file/testing/power_cut.h"
#include "run/reader.h"
#include "run/run_fixture.h"
#include "run/writer.h"

namespace assay::run {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr unsigned kSeed = 19;

// A capture of some seconds, through the Writer, at NAME in the folder of a FaultyDisk.
struct Capture {
  int seconds = 4;
  int waits_per_thread = 12;
  bool overwrite = false;
};

// What the Writer said, and after how many steps.
struct Outcome {
  std::optional<size_t> made;
  std::vector<size_t> flushed;  // one for each second
  std::optional<size_t> finished;
  std::optional<Error> error;
};

Outcome write_capture(const Capture& capture, const std::string& path, const FaultyDisk& disk) {
  Outcome outcome;
  auto writer = Writer::create(path, fixture_info(), capture.overwrite);
  if (!writer) {
    outcome.error = writer.error();
    return outcome;
  }
  outcome.made = disk.steps().size();
  add_fixture_tables(**writer);
  for (int second = 0; second < capture.seconds; ++second) {
    FixtureRows rows = fixture_rows(second, capture.waits_per_thread, kSeed);
    for (const model::Sample& sample : rows.samples) (*writer)->add_sample(sample);
    for (const model::Wait& wait : rows.waits) (*writer)->add_wait(wait);
    if (auto done = (*writer)->flush(kFixtureBegin + (second + 1) * kNsPerSecond); !done) {
      outcome.error = done.error();
      return outcome;
    }
    outcome.flushed.push_back(disk.steps().size());
  }
  model::RunInfo info = fixture_info();
  info.window_end_ns = kFixtureBegin + capture.seconds * kNsPerSecond;
  info.end_reason = "time";
  if (auto done = (*writer)->finish(info); !done) {
    outcome.error = done.error();
  } else {
    outcome.finished = disk.steps().size();
  }
  return outcome;
}

// What must be in the run: whole seconds, of which at most one more than is known to be there.
struct Promise {
  int seconds = 0;
  bool finished = false;
};

// Empty: it is kept.
std::string broken_promise(const std::string& path, const Capture& capture, Promise promise) {
  auto reader = Reader::open(path);
  if (!reader) return reader.error().text();
  const model::RunInfo& info = (*reader)->contents().info;
  int64_t seconds = std::max<int64_t>(0, info.window_end_ns - kFixtureBegin) / kNsPerSecond;
  if (seconds < promise.seconds)
    return fmt::format("{} seconds of {} are there", seconds, promise.seconds);
  if (seconds > promise.seconds + 1) return "more is there than was written";
  if (promise.finished && !info.finished) return "it is not finished any more";
  int64_t waits = 0;
  auto done = (*reader)->for_each_wait({}, [&](const model::Wait&) { ++waits; });
  if (!done) return done.error().text();
  if (waits != seconds * capture.waits_per_thread * int64_t{kFixtureThreads})
    return fmt::format("{} waits in {} seconds", waits, seconds);
  return "";
}

void write_folder(const std::filesystem::path& at, const PowerCut::Folder& folder) {
  std::filesystem::remove_all(at);
  std::filesystem::create_directory(at);
  for (const auto& [name, bytes] : folder) {
    std::ofstream(at / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

class RunFaults : public ::testing::Test {
 protected:
  RunFaults() { make_folder(); }

  void make_folder() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }

  std::string path() const { return folder_ + "/run.assay"; }

  // After each step, the power goes away.
  void cut_power_everywhere(const Capture& capture, size_t stride) {
    PowerCut cut;
    if (capture.overwrite) put_older_run(cut);
    FaultyDisk disk(folder_);
    Outcome outcome = write_capture(capture, path(), disk);
    ASSERT_TRUE(outcome.finished) << outcome.error->text();
    std::mt19937 random(kSeed);
    for (size_t step = 0; step < disk.steps().size(); ++step) {
      // The step itself has begun, and is not known to be done. A sync that is not done is nothing.
      bool syncs = disk.steps()[step].kind == DiskStep::Kind::sync ||
                   disk.steps()[step].kind == DiskStep::Kind::sync_names;
      if (!syncs) cut.add(disk.steps()[step]);
      for (int order = 0; step % stride == 0 && order < static_cast<int>(PowerCut::Order::count);
           ++order) {
        SCOPED_TRACE(fmt::format("seed {}, step {} of {}, order {}", kSeed, step,
                                 disk.steps().size(), order));
        expect_after_cut(capture, outcome, step,
                         cut.folder_after(static_cast<PowerCut::Order>(order), random));
        if (HasFatalFailure()) return;
      }
      if (syncs) cut.add(disk.steps()[step]);
    }
  }

  void put_older_run(PowerCut& cut) {
    write_fixture_run(path(), 1, 1);
    std::ifstream in(path(), std::ios::binary);
    struct stat status {};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    cut.put("run.assay", status.st_ino, {std::istreambuf_iterator<char>(in), {}});
  }

  void expect_after_cut(const Capture& capture, const Outcome& outcome, size_t step,
                        const PowerCut::Folder& left) {
    ++points_;
    bool made = outcome.made && step >= *outcome.made;
    if (!made && !left.contains("run.assay")) {
      ASSERT_FALSE(capture.overwrite) << "the older run is gone, and the new one is not there";
      return;
    }
    write_folder(scratch_.file("after"), left);
    std::string after = scratch_.file("after/run.assay");
    if (!made && capture.overwrite) {  // the older one or the new one
      auto reader = Reader::open(after);
      ASSERT_TRUE(reader) << reader.error().text();
      return;
    }
    Promise promise{0, outcome.finished && step >= *outcome.finished};
    for (size_t flushed : outcome.flushed) promise.seconds += step >= flushed ? 1 : 0;
    ASSERT_EQ(broken_promise(after, capture, promise), "");
  }

  void fail_at(const Capture& capture, Fault fault) {
    make_folder();
    Outcome outcome;
    bool failed = false;
    {
      FaultyDisk disk(folder_, fault);
      outcome = write_capture(capture, path(), disk);
      failed = disk.has_failed();
    }
    points_ += failed ? 1 : 0;
    expect_after_fault(capture, fault, outcome);
  }

  void expect_after_fault(const Capture& capture, Fault fault, const Outcome& outcome) {
    bool full = fault.kind != Fault::Kind::io_error;
    if (outcome.error && full) {
      EXPECT_EQ(outcome.error->code, ENOSPC) << outcome.error->text();
      EXPECT_THAT(outcome.error->text(),
                  AnyOf(HasSubstr("no space left"), HasSubstr("No space left")));
    } else if (outcome.error) {
      EXPECT_THAT(outcome.error->text(), HasSubstr("Input/output error"));
    }
    if (!outcome.made && !std::filesystem::exists(path())) return;
    Promise promise{static_cast<int>(outcome.flushed.size()), outcome.finished.has_value()};
    EXPECT_EQ(broken_promise(path(), capture, promise), "");
  }

  // Each step of the capture fails once.
  void fail_everywhere(const Capture& capture, Fault::Kind kind, bool stays) {
    make_folder();
    size_t steps = 0;
    {
      FaultyDisk disk(folder_);
      ASSERT_TRUE(write_capture(capture, path(), disk).finished);
      steps = disk.steps().size();
    }
    for (size_t step = 0; step < steps && !HasFailure(); step += kSanitized ? 7 : 1) {
      SCOPED_TRACE(fmt::format("fault {} at step {} of {}{}", static_cast<int>(kind), step, steps,
                               stays ? " and after it" : ""));
      fail_at(capture, {kind, stays, step});
    }
  }

  void tell_points(const char* what) {
    RecordProperty("points", points_);
    fmt::print("{}: {} points, seed {}\n", what, points_, kSeed);
  }

  ScratchDirectory scratch_;
  std::string folder_ = scratch_.file("disk");
  int points_ = 0;
};

TEST_F(RunFaults, AfterALossOfPowerTheRunOpensWithEveryFlush) {
  cut_power_everywhere({}, kSanitized ? 7 : 1);
  tell_points("power cuts");
  EXPECT_GE(points_, kSanitized ? 100 : 1'000);
}

TEST_F(RunFaults, AfterALossOfPowerTheOlderRunOrTheNewOneIsThere) {
  cut_power_everywhere({.seconds = 1, .overwrite = true}, kSanitized ? 7 : 1);
  tell_points("power cuts over an older run");
}

// More than SQLite holds in memory: it writes in the middle of a transaction.
TEST_F(RunFaults, AfterALossOfPowerALargeRunOpens) {
  cut_power_everywhere({.seconds = 2, .waits_per_thread = 12'000}, kSanitized ? 997 : 97);
  tell_points("power cuts of a large run");
}

TEST_F(RunFaults, AFullDiskIsCalledAFullDiskAndTheRunOpens) {
  Capture capture{.seconds = 2};
  fail_everywhere(capture, Fault::Kind::no_space, false);
  fail_everywhere(capture, Fault::Kind::no_space, true);
  fail_everywhere(capture, Fault::Kind::short_write, false);
  fail_everywhere(capture, Fault::Kind::short_write, true);
  tell_points("full disks");
}

TEST_F(RunFaults, AfterAnErrorOfTheDiskTheRunOpens) {
  Capture capture{.seconds = 2};
  fail_everywhere(capture, Fault::Kind::io_error, false);
  fail_everywhere(capture, Fault::Kind::io_error, true);
  tell_points("errors of the disk");
}

}  // namespace
}  // namespace assay::run
