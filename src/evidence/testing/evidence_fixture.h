// EvidenceTest: a target that exists in tables and files of the test alone, and the parts of
// evidence/ that stand on one another: address spaces and stacks over a fake /proc, fake walks,
// names and sink.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/stacks/address_spaces.h"
#include "evidence/stacks/stack_builder.h"
#include "evidence/testing/fake_sink.h"
#include "evidence/testing/fake_stages.h"
#include "evidence/testing/fake_tasks.h"
#include "os/fake_tree.h"

namespace assay::evidence::testing {

class EvidenceTest : public ::testing::Test {
 protected:
  static constexpr pid_t kPid = 5'000'070;  // beyond what a kernel gives out: no process is meant
  static constexpr uint64_t kCode =
      0x10000;  // where the program is mapped, from offset 0x1000 of its file

  EvidenceTest() { map_program(kPid); }

  void map_program(pid_t pid) {
    capture::MmapRecord record;
    record.start = kCode;
    record.length = 0x10000;
    record.file_offset = 0x1000;
    record.build_id = build_id_;
    record.executable = true;
    record.path = "/bin/server";
    spaces_.mapped(pid, record);
  }
  // What every walk finds from now on: a leaf and its callers.
  void walk_finds(std::vector<uint64_t> pcs, model::StackEnd end = model::StackEnd::complete) {
    unwinder_.result = {};
    for (size_t i = 0; i < pcs.size(); ++i) unwinder_.result.frames.push_back({pcs[i], i > 0});
    unwinder_.result.end = end;
  }

  os::FakeTree tree_;
  os::ProcFs proc_{tree_.root()};
  std::vector<uint8_t> build_id_{0xaa, 0xbb};
  FakeSink sink_;
  FakeTasks tasks_;
  FakeSymbolizer symbolizer_;
  FakeUnwinder unwinder_;
  AddressSpaces spaces_{proc_, [](pid_t, const model::Mapping&, const model::Module&, bool) {}};
  std::vector<model::Frame> new_frames_;
  StackBuilder stacks_{
      spaces_, unwinder_, sink_,
      [this](model::FrameId, const model::Frame& frame) { new_frames_.push_back(frame); }};
};

}  // namespace assay::evidence::testing
