// Reader: opens a run file and reads it back.
//
// The small tables are loaded whole at open(); samples and waits are streamed block by block, so a
// large run needs no more memory than its largest block and its stack tree.
// Threads: const calls may run concurrently on different Readers (twin() makes another of the same
// run), not on one. A long stream is decoded ahead on a thread of its own; rows are visited on the
// caller's.
// Failures: a missing, truncated, corrupt, foreign or newer file is an Error that says which; a
// block that fails its checks ends the stream with an Error naming it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
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

struct TimedMapping {
  model::ProcessId process;
  model::Mapping mapping;
  TimeNs from_ns = 0;
};

// Everything but samples, waits and points.
struct Contents {
  model::RunInfo info;
  std::vector<model::Fact> facts;
  std::vector<model::QualityNote> notes;
  std::vector<model::Process> processes;  // index = id, as below
  std::vector<model::Thread> threads;
  std::vector<model::Module> modules;
  std::vector<model::Frame> frames;
  std::vector<model::StackNode> stacks;  // stacks[0] is the empty stack
  std::vector<TimedMapping> mappings;
  std::vector<std::vector<model::Location>> locations;  // by frame id; empty: unnamed
  std::vector<model::Series> series;
  std::vector<model::Loss> losses;
  std::vector<model::DataName> data_names;  // by process, then address
  std::vector<model::HeapSnapshot> heap_snapshots;
  std::vector<model::HeapSum> heap_sums;
  bool has_heap = false;       // allocations were sampled, or a profile of them imported
  bool heap_imported = false;  // then there are sums instead of allocations
  bool has_time = false;       // there are samples or waits

  // A heap profile, recorded or imported, without samples and waits.
  bool is_heap_alone() const { return info.backend == "heap" || (heap_imported && !has_time); }
};

// Limits a stream to [begin, end) by sample time, or by overlap for waits.
struct TimeRange {
  TimeNs begin_ns = INT64_MIN;
  TimeNs end_ns = INT64_MAX;
  // Once it is true the stream ends at its next block, with an Error. Null: read to the end.
  const std::atomic<bool>* stop = nullptr;
};

class Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path);
  // A run that we have just written into `file`; `path` names it in Errors.
  static Result<std::unique_ptr<Reader>> read_back(UniqueFd file, const std::string& path);
  virtual ~Reader() = default;

  virtual const Contents& contents() const = 0;
  // Another reader of the same run, for another thread: it shares contents() and streams by itself.
  // Null: this reader has none.
  virtual Result<std::unique_ptr<Reader>> twin() const { return nullptr; }
  // The number of samples and waits, from the totals of the blocks.
  virtual Result<uint64_t> row_count() const = 0;
  virtual Result<void> for_each_sample(
      const TimeRange& range, const std::function<void(const model::Sample&)>& visit) const = 0;
  virtual Result<void> for_each_wait(
      const TimeRange& range, const std::function<void(const model::Wait&)>& visit) const = 0;
  // Sampled allocations and their ends; none in runs without a heap part.
  virtual Result<void> for_each_heap_alloc(
      const TimeRange&, const std::function<void(const model::HeapAlloc&)>&) const {
    return {};
  }
  virtual Result<void> for_each_heap_free(
      const TimeRange&, const std::function<void(const model::HeapFree&)>&) const {
    return {};
  }
  virtual Result<std::vector<model::Point>> points(model::SeriesId series) const = 0;
  // Source text kept in the run; empty when there is none.
  virtual Result<std::string> source_line(const std::string& file, uint32_t line) const = 0;
};

}  // namespace assay::run
