// Writer: writes a run file while the capture runs.
//
// In: values of model/ from a session. Out: one SQLite file (docs/run-format.md). Memory is
// bounded: samples and waits are buffered and written at every flush(). Threads: add_* and set_*
// may be called from any thread and only buffer (one mutex, no I/O). flush() and finish() do the
// I/O and are called by one thread at a time. Failures: a full disk or an I/O error is returned by
// flush()/finish(); everything committed by earlier flushes stays readable. After kill -9 the file
// opens with what the last flush committed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/address_space.h"
#include "model/data_name.h"
#include "model/heap/heap.h"
#include "model/location.h"
#include "model/loss.h"
#include "model/module.h"
#include "model/process.h"
#include "model/run_info.h"
#include "model/sample.h"
#include "model/series.h"
#include "model/stack.h"

namespace assay::run {

class Writer {
 public:
  // Fails when the path exists (unless overwrite) or cannot be written.
  static Result<std::unique_ptr<Writer>> create(const std::string& path, const model::RunInfo& info,
                                                bool overwrite);
  // For a caller that has made an empty file, and moves it to its final path when it is finished: it
  // has no journal and is not synced. After a failure or a crash it is useless. `path` is for
  // Errors.
  static std::unique_ptr<Writer> create_draft(UniqueFd file, const std::string& path,
                                              const model::RunInfo& info);
  // Whether create() would succeed; creates nothing. For checking before expensive work begins.
  static Result<void> check(const std::string& path, bool overwrite);
  virtual ~Writer() = default;

  virtual void set_info(const model::RunInfo& info) = 0;
  virtual void add_fact(const model::Fact& fact) = 0;  // replaces the same (scope, key)
  virtual void add_note(
      const model::QualityNote& note) = 0;  // the same topic and text is kept once
  virtual void put_process(const model::Process& process) = 0;  // inserts or replaces by id
  virtual void put_thread(const model::Thread& thread) = 0;     // inserts or replaces by id
  virtual void add_module(
      const model::Module& module) = 0;  // ids ascend from 0, as for the next two
  virtual void add_frame(model::FrameId id, const model::Frame& frame) = 0;
  virtual void add_stack(model::StackId id, const model::StackNode& node) = 0;  // from 1
  virtual void add_mapping(model::ProcessId process, const model::Mapping& mapping,
                           TimeNs from_ns) = 0;
  // Names of a frame, innermost inlined function first. May come long after the frame; replaces.
  virtual void put_locations(model::FrameId id, std::span<const model::Location> locations) = 0;
  virtual void add_sample(const model::Sample& sample) = 0;
  virtual void add_wait(const model::Wait& wait) = 0;
  // The waits that are still open: each call replaces the last. With them, a blocked thread does
  // not look like a running one in a run that is cut off; finish() removes them.
  virtual void put_open_waits(std::vector<model::Wait> waits) = 0;
  // Sampled allocations, numbered in the order they come, and the ends of earlier ones. Writers
  // that keep no heap ignore them.
  virtual void add_heap_alloc(const model::HeapAlloc&) {}
  virtual void add_heap_free(const model::HeapFree&) {}
  virtual void add_heap_snapshot(const model::HeapSnapshot&) {}
  virtual void add_heap_sum(const model::HeapSum&) {}
  virtual void add_series(const model::Series& series) = 0;
  virtual void add_point(const model::Point& point) = 0;
  virtual void add_loss(const model::Loss& loss) = 0;
  // The name of the object at a wait's address (a lock); replaces.
  virtual void put_data_name(const model::DataName& name) = 0;
  // Source text around hot lines: (file, line, text). Kept so that a run can be read elsewhere.
  virtual void put_source_line(const std::string& file, uint32_t line, const std::string& text) = 0;

  // Whether so much is buffered that it should be flushed early. From any thread.
  virtual bool is_filling() const = 0;
  // Commits everything buffered; called about once a second with the time up to which it is
  // complete.
  virtual Result<void> flush(TimeNs complete_until_ns) = 0;
  // Flushes, marks the run finished and syncs the file (except drafts). Nothing may be added
  // afterwards.
  virtual Result<void> finish(const model::RunInfo& info) = 0;
};

}  // namespace assay::run
