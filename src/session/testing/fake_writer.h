// FakeWriter: a run::Writer that keeps nothing but how often it was flushed; its flushes fail when
// a test says so. Threads: any.
#pragma once

#include <atomic>

#include "run/writer.h"

namespace assay::session::testing {

class FakeWriter final : public run::Writer {
 public:
  void set_info(const model::RunInfo&) override {}
  void add_fact(const model::Fact&) override {}
  void add_note(const model::QualityNote&) override {}
  void put_process(const model::Process&) override {}
  void put_thread(const model::Thread&) override {}
  void add_module(const model::Module&) override {}
  void add_frame(model::FrameId, const model::Frame&) override {}
  void add_stack(model::StackId, const model::StackNode&) override {}
  void add_mapping(model::ProcessId, const model::Mapping&, TimeNs) override {}
  void put_locations(model::FrameId, std::span<const model::Location>) override {}
  void add_sample(const model::Sample&) override {}
  void add_wait(const model::Wait&) override {}
  void put_open_waits(std::vector<model::Wait>) override {}
  void add_series(const model::Series&) override {}
  void add_point(const model::Point&) override {}
  void add_loss(const model::Loss&) override {}
  void put_data_name(const model::DataName&) override {}
  void put_source_line(const std::string&, uint32_t, const std::string&) override {}
  bool is_filling() const override { return filling; }
  Result<void> flush(TimeNs complete_until_ns) override {
    ++flushes;
    last_complete = complete_until_ns;
    if (full) return fail("the disk is full");
    return {};
  }
  Result<void> finish(const model::RunInfo&) override { return {}; }

  std::atomic<bool> filling{false}, full{false};
  std::atomic<int> flushes{0};
  std::atomic<TimeNs> last_complete{0};
};

}  // namespace assay::session::testing
