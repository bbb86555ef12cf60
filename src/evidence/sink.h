// Sink: where a running capture puts what it has found out.
//
// In: the nouns of model/, from every part of evidence/ and from the captures that join them. Out:
// whatever the implementation makes of them; a run file, where a capture records one. Ids of
// modules and frames ascend from 0, those of stacks from 1, and each is added once, before anything
// that refers to it. A put_* replaces what was put under the same id. Threads: every method may be
// called from any thread, and none of them waits for a disk. Failures: none here; an implementation
// that cannot keep something says so to its owner.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/address_space.h"
#include "model/data_name.h"
#include "model/heap/heap.h"
#include "model/location.h"
#include "model/loss.h"
#include "model/module.h"
#include "model/process.h"
#include "model/run_info.h"
#include "model/sample.h"
#include "model/stack.h"

namespace assay::evidence {

class Sink {
 public:
  virtual ~Sink() = default;

  // The processes and threads that were observed.
  virtual void put_process(const model::Process& process) = 0;
  virtual void put_thread(const model::Thread& thread) = 0;
  virtual void add_fact(const model::Fact& fact) = 0;

  // Code and its names.
  virtual void add_module(const model::Module& module) = 0;
  virtual void add_mapping(model::ProcessId process, const model::Mapping& mapping,
                           TimeNs from_ns) = 0;
  virtual void add_frame(model::FrameId id, const model::Frame& frame) = 0;
  virtual void add_stack(model::StackId id, const model::StackNode& node) = 0;
  virtual void put_locations(model::FrameId id, std::span<const model::Location> locations) = 0;
  virtual void put_data_name(const model::DataName& name) = 0;
  virtual void put_source_line(const std::string& file, uint32_t line, const std::string& text) = 0;

  // Threads' time.
  virtual void add_sample(const model::Sample& sample) = 0;
  virtual void add_wait(const model::Wait& wait) = 0;
  virtual void put_open_waits(
      std::vector<model::Wait> waits) = 0;  // all of them: the last call counts

  // The heap.
  virtual void add_heap_alloc(const model::HeapAlloc& alloc) = 0;
  virtual void add_heap_free(const model::HeapFree& free) = 0;
  virtual void add_heap_snapshot(const model::HeapSnapshot& snapshot) = 0;

  // What limits all of this.
  virtual void add_loss(const model::Loss& loss) = 0;
  virtual void add_note(const model::QualityNote& note) = 0;
};

}  // namespace assay::evidence
