// What goes into a RunSink is what the run file holds: every noun arrives, and as itself.
#include "session/lifecycle/run_sink.h"

#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "run/reader.h"

namespace assay::session {
namespace {

class RunSinkTest : public ::testing::Test {
 protected:
  static constexpr TimeNs kBegin = 5 * kNsPerSecond;

  RunSinkTest() {
    info_.window_begin_ns = kBegin;
    info_.window_end_ns = kBegin + kNsPerSecond;
    auto writer = run::Writer::create(path_, info_, false);
    EXPECT_TRUE(writer) << writer.error().what;
    writer_ = std::move(*writer);
    sink_ = std::make_unique<RunSink>(*writer_);
    model::Process process;
    process.pid = 12;
    sink_->put_process(process);
    model::Thread thread;
    thread.tid = 34;
    sink_->put_thread(thread);
    sink_->add_module({{0}, model::ModuleKind::elf, "/bin/server", "abcd"});
    sink_->add_frame({0}, {{0}, 0x77});
    sink_->add_stack({1}, {{0}, {0}});
  }
  std::unique_ptr<run::Reader> read() {
    info_.finished = true;
    EXPECT_TRUE(writer_->finish(info_));
    auto reader = run::Reader::open(path_);
    EXPECT_TRUE(reader);
    return reader ? std::move(*reader) : nullptr;
  }

  TemporaryDirectory dir_;
  std::string path_ = dir_ / "run.assay";
  model::RunInfo info_;
  std::unique_ptr<run::Writer> writer_;
  std::unique_ptr<RunSink> sink_;
};

TEST_F(RunSinkTest, WhoWasObservedAndTheirCode) {
  sink_->add_fact({"host", "kernel", "6.1"});
  sink_->add_mapping({0}, {0x1000, 0x2000, 0x10, {0}}, kBegin);
  model::Location location;
  location.function = "serve";
  sink_->put_locations({0}, std::span(&location, 1));
  sink_->put_data_name({{0}, 0x9000, "queue_lock"});
  sink_->put_source_line("/src/a.cc", 7, "lock();");
  auto reader = read();
  const run::Contents& run = reader->contents();
  EXPECT_EQ(run.processes.at(0).pid, 12);
  EXPECT_EQ(run.threads.at(0).tid, 34);
  EXPECT_EQ(run.facts.at(0).value, "6.1");
  EXPECT_EQ(run.modules.at(0).build_id, "abcd");
  EXPECT_EQ(run.frames.at(0).address, 0x77u);
  EXPECT_EQ(run.stacks.size(), 2u);
  EXPECT_EQ(run.mappings.at(0).from_ns, kBegin);
  EXPECT_EQ(run.locations.at(0).at(0).function, "serve");
  EXPECT_EQ(run.data_names.at(0).name, "queue_lock");
  EXPECT_EQ(reader->source_line("/src/a.cc", 7).value(), "lock();");
}

TEST_F(RunSinkTest, TheirTimeTheirHeapAndWhatWasLost) {
  sink_->add_sample({kBegin + 1, {0}, {1}, 100, 3});
  model::Wait wait;
  wait.start = kBegin + 10;
  wait.duration_ns = 50;
  wait.stack = {1};
  sink_->add_wait(wait);
  sink_->put_open_waits({wait});
  sink_->add_heap_alloc({kBegin + 2, {0}, {1}, 0, 64, 1, model::HeapFunction::calloc});
  sink_->add_heap_free({kBegin + 3, {0}, 0});
  sink_->add_heap_snapshot({{0}, kBegin + 4, 1000, 10, 1});
  sink_->add_loss({model::LossKind::throttled, 2, kBegin, 9});
  sink_->add_note({"rings", "too small", "make them larger"});
  auto reader = read();
  int samples = 0, waits = 0, allocs = 0, frees = 0;
  EXPECT_TRUE(reader->for_each_sample({}, [&](const model::Sample& s) { samples += s.cpu == 3; }));
  EXPECT_TRUE(
      reader->for_each_wait({}, [&](const model::Wait& w) { waits += w.duration_ns == 50; }));
  EXPECT_TRUE(reader->for_each_heap_alloc(
      {}, [&](const model::HeapAlloc& a) { allocs += a.function == model::HeapFunction::calloc; }));
  EXPECT_TRUE(reader->for_each_heap_free(
      {}, [&](const model::HeapFree& f) { frees += f.time == kBegin + 3; }));
  EXPECT_EQ(samples, 1);
  EXPECT_EQ(waits, 1) << "a finished run keeps no open waits beside it";
  EXPECT_EQ(allocs, 1);
  EXPECT_EQ(frees, 1);
  EXPECT_EQ(reader->contents().heap_snapshots.at(0).live_bytes, 1000);
  EXPECT_EQ(reader->contents().losses.at(0).count, 9u);
  EXPECT_EQ(reader->contents().notes.at(0).remedy, "make them larger");
}

}  // namespace
}  // namespace assay::session
