// RunSink: a capture's evidence goes into a run file.
//
// In: what evidence/ finds. Out: the same, in a run::Writer that outlives this. Threads: any, as
// the Writer allows. Failures: the Writer's, told by its flush.
#pragma once

#include <utility>

#include "evidence/sink.h"
#include "run/writer.h"

namespace assay::session {

class RunSink final : public evidence::Sink {
 public:
  explicit RunSink(run::Writer& writer) : writer_(writer) {}

  void put_process(const model::Process& process) override { writer_.put_process(process); }
  void put_thread(const model::Thread& thread) override { writer_.put_thread(thread); }
  void add_fact(const model::Fact& fact) override { writer_.add_fact(fact); }
  void add_module(const model::Module& module) override { writer_.add_module(module); }
  void add_mapping(model::ProcessId process, const model::Mapping& mapping,
                   TimeNs from_ns) override {
    writer_.add_mapping(process, mapping, from_ns);
  }
  void add_frame(model::FrameId id, const model::Frame& frame) override {
    writer_.add_frame(id, frame);
  }
  void add_stack(model::StackId id, const model::StackNode& node) override {
    writer_.add_stack(id, node);
  }
  void put_locations(model::FrameId id, std::span<const model::Location> locations) override {
    writer_.put_locations(id, locations);
  }
  void put_data_name(const model::DataName& name) override { writer_.put_data_name(name); }
  void put_source_line(const std::string& file, uint32_t line, const std::string& text) override {
    writer_.put_source_line(file, line, text);
  }
  void add_sample(const model::Sample& sample) override { writer_.add_sample(sample); }
  void add_wait(const model::Wait& wait) override { writer_.add_wait(wait); }
  void put_open_waits(std::vector<model::Wait> waits) override {
    writer_.put_open_waits(std::move(waits));
  }
  void add_heap_alloc(const model::HeapAlloc& alloc) override { writer_.add_heap_alloc(alloc); }
  void add_heap_free(const model::HeapFree& free) override { writer_.add_heap_free(free); }
  void add_heap_snapshot(const model::HeapSnapshot& snapshot) override {
    writer_.add_heap_snapshot(snapshot);
  }
  void add_loss(const model::Loss& loss) override { writer_.add_loss(loss); }
  void add_note(const model::QualityNote& note) override { writer_.add_note(note); }

 private:
  run::Writer& writer_;
};

}  // namespace assay::session
