// HeapCapture over channels that the test writes in the place of a launched program.
#include "session/heap/heap_capture.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "capture/heap/testing/fake_heap_writer.h"
#include "evidence/testing/evidence_fixture.h"

namespace assay::session {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HeapCaptureTest : public evidence::testing::EvidenceTest {
 protected:
  HeapCaptureTest() {
    tasks_.add(self_, self_);
    tasks_.add(self_, 7);  // the fake sampler's thread
    os::add_process(tree_, {.pid = self_, .comm = "server", .exe = "/bin/server"});
    launch();
  }
  void launch() {
    capture_.emplace(
        HeapSampling{.rate_bytes = 4096, .snapshot_ns = 0, .library = "/lib/sampler.so"});
    auto extras = capture_->prepare_launch();
    ASSERT_TRUE(extras) << extras.error().what;
    environment_ = extras->environment;
    for (const std::string& entry : environment_) {
      if (entry.starts_with("ASSAY_HEAP_CHANNEL="))
        directory_ = fs::path(entry.substr(entry.find('=') + 1)).parent_path();
    }
  }
  void write_channel(const std::string& name) {
    auto bytes = writer_.memory();
    std::ofstream(directory_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string channel_name() const { return std::to_string(self_) + ".heap"; }
  void join() { capture_->join({proc_, stacks_, tasks_, sink_, hot_}, spaces_); }

  pid_t self_ = getpid();
  capture::fake::HeapWriter writer_;
  evidence::HotSource hot_;
  std::vector<std::string> environment_;
  fs::path directory_;
  std::optional<HeapCapture> capture_;
};

TEST_F(HeapCaptureTest, ALaunchedProgramIsToldWhereAndHowOften) {
  EXPECT_THAT(environment_, Contains(StartsWith("LD_PRELOAD=/lib/sampler.so")));
  EXPECT_THAT(environment_, Contains("ASSAY_HEAP_RATE=4096"));
  ASSERT_TRUE(fs::is_directory(directory_));
  EXPECT_EQ(fs::status(directory_).permissions() & fs::perms::others_all, fs::perms::none);
  capture_.reset();
  EXPECT_FALSE(fs::exists(directory_)) << "nothing is left behind";
}

TEST_F(HeapCaptureTest, RecordsOfAChannelBecomeAllocationsAndFrees) {
  EXPECT_FALSE(capture_->has_channels());
  writer_.alloc(100, 0xa000, 64, {0x1111});
  writer_.alloc(200, 0xb000, 64, {0x2222});
  writer_.free(300, 0xa000);
  write_channel(channel_name());
  EXPECT_TRUE(capture_->has_channels());
  EXPECT_FALSE(fs::exists(directory_ / channel_name())) << "both sides have it mapped";
  join();
  capture_->poll(1000);
  ASSERT_EQ(sink_.allocs.size(), 2u);
  EXPECT_EQ(sink_.allocs[0].thread, tasks_.find(7)->thread);
  ASSERT_EQ(sink_.frees.size(), 1u);
  EXPECT_EQ(sink_.frees[0].id, sink_.allocs[0].id);
  capture_->end(2000);
  ASSERT_EQ(sink_.snapshots.size(), 1u);
  EXPECT_EQ(sink_.snapshots[0].samples, 1);
  EXPECT_TRUE(sink_.losses.empty());
  EXPECT_TRUE(sink_.notes.empty());
  capture_->end(3000);
  EXPECT_EQ(sink_.snapshots.size(), 1u) << "it ends once";
}

TEST_F(HeapCaptureTest, FilesThatAreNoChannelsAreLeftAlone) {
  for (const char* name : {"heap", "x.heap", "12", "12.heap.x", "-5.heap", "0.heap", ".heap"})
    write_channel(name);
  std::ofstream(directory_ / "99.heap") << "too short";
  EXPECT_FALSE(capture_->has_channels());
  writer_.header().magic = 1;
  write_channel(channel_name());
  EXPECT_FALSE(capture_->has_channels());
}

TEST_F(HeapCaptureTest, WhatFoundTheRingFullIsCountedAndNoted) {
  while (writer_.alloc(100, 0xa000, 64, {0x1111})) {
  }
  write_channel(channel_name());
  ASSERT_TRUE(capture_->has_channels());
  join();
  capture_->poll(1000);
  capture_->end(2000);
  EXPECT_EQ(capture_->dropped(), 1u);
  EXPECT_EQ(sink_.lost(model::LossKind::dropped_samples), 1u);
  ASSERT_EQ(sink_.notes.size(), 1u);
  EXPECT_THAT(sink_.notes[0].remedy, HasSubstr("--rate 16k"));
}

TEST_F(HeapCaptureTest, AnotherProgramInTheSameProcessHasAHeapAndAChannelOfItsOwn) {
  writer_.alloc(100, 0xa000, 64, {0x1111});
  write_channel(channel_name());
  ASSERT_TRUE(capture_->has_channels());
  join();
  capture_->poll(kNsPerSecond);
  os::add_process(tree_, {.pid = self_, .comm = "other", .exe = "/bin/other"});
  writer_ = {};
  writer_.free(300, 0xa000);
  write_channel(channel_name());
  capture_->poll(2 * kNsPerSecond);
  EXPECT_EQ(sink_.allocs.size(), 1u);
  EXPECT_TRUE(sink_.frees.empty()) << "it is not the other program's";
  EXPECT_EQ(tasks_.comms[self_], "other");
}

TEST(HeapHoldText, SaysWhoWasHeldAndHowLong) {
  EXPECT_EQ(to_text(HeapHold{12, true, 2 * kNsPerMs}),
            "attaching held one thread of process 12 for 2.00 ms");
  EXPECT_THAT(to_text(HeapHold{12, false, 2 * kNsPerMs}), StartsWith("detaching"));
}

}  // namespace
}  // namespace assay::session
