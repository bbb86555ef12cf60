// RunIndex: one open run, laid out the way the page asks for it.
//
// Call paths of functions become nodes in preorder (node 0 is the root of all), so that a subtree
// is a range of numbers and a tree travels as two columns: depth and function. A large run is also
// added up by slices of time (sums(), moments()), so that few questions have to read all of it.
// Owns the readers. Threads: what open() laid out never changes and may be read by any thread; rows
// are read through a reader that borrow() lends, since the streams of one may not run twice at
// once. Failures: the reader's, at open().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analysis/accounted/accounted_run.h"
#include "base/result.h"
#include "run/reader.h"
#include "view/data/slice_sums.h"
#include "view/data/thread_state.h"
#include "view/reader_pool.h"

namespace assay::view {

using NodeIndex = uint32_t;

// What laying out may take, and who watches it.
struct IndexOptions {
  uint64_t large_rows = 4'000'000;       // from so many samples and waits on sums are kept
  size_t most_sum_bytes = 256u << 20;    // of them
  std::atomic<int>* permille = nullptr;  // told how far it is
  const std::atomic<bool>* stop = nullptr;
  bool local_source = false;  // also show source of this machine's files that the run names
};

class RunIndex {
 public:
  static Result<std::unique_ptr<RunIndex>> open(const std::string& path);
  // Of any reader; `path` is only shown.
  static Result<std::unique_ptr<RunIndex>> make(std::unique_ptr<run::Reader> reader,
                                                const std::string& path,
                                                const IndexOptions& options = {});

  const std::string& path() const { return path_; }
  // The first reader: for one thread alone, as when a report is written.
  const run::Reader& reader() const { return *reader_; }
  // For a question beside others. Waits while all are lent.
  ReaderPool::Lease borrow() const { return pool_.borrow(); }
  const run::Contents& contents() const { return reader_->contents(); }
  const analysis::AccountedRun& accounted() const { return accounted_; }
  const analysis::CallTree& tree() const { return accounted_.tree(); }
  TimeNs begin_ns() const { return contents().info.window_begin_ns; }
  TimeNs end_ns() const { return contents().info.window_end_ns; }
  int64_t window_ns() const { return end_ns() > begin_ns() ? end_ns() - begin_ns() : 0; }
  bool has_waits() const { return has_waits_; }
  // A run is a foreign file: files of this machine are read for it only where the user asked for that.
  bool reads_local_source() const { return local_source_; }
  // False: not one sample or wait in the window, so nothing says that it ran.
  bool seen(model::ThreadId thread) const { return seen_[thread.value]; }

  size_t node_count() const { return depth_.size(); }
  const std::vector<uint32_t>& depths() const { return depth_; }
  const std::vector<uint32_t>& functions() const { return function_; }
  const std::vector<bool>& inlined() const { return inlined_; }
  // By node: index into category_names().
  const std::vector<uint32_t>& categories() const { return category_; }
  std::vector<std::string_view> category_names() const { return accounted_.category_names(); }
  NodeIndex node_of(model::StackId stack) const { return node_of_path_[tree().path_of(stack)]; }
  NodeIndex node_of_path(analysis::PathIndex path) const { return node_of_path_[path]; }
  // user or kernel, by the leaf of the stack.
  ThreadState running_state(model::StackId stack) const;
  // Idle, or blocked on something.
  static ThreadState waiting_state(const analysis::AccountedWait& wait) {
    return wait.idle ? kIdle : blocked_state(wait.kind);
  }

  // Time by slice, thread, state and node, and, more finely, by slice, thread and state (its node
  // is always 0). Null: the run is small enough to be read.
  const SliceSums* sums() const { return kept(sums_); }
  const SliceSums* moments() const { return kept(moments_); }

  // The report of the whole run as JSON, computed once, by this reader.
  Result<std::string> report_json(const run::Reader& reader);
  Result<std::string> report_json() { return report_json(*reader_); }

 private:
  class Meter;
  RunIndex(std::unique_ptr<run::Reader> reader, std::string path);
  void lay_out();
  void mark_inlined();
  Result<void> look_once(const IndexOptions& options);
  Result<void> settle(const IndexOptions& options, Meter& meter);
  void add_up(const model::Sample& sample);
  Result<void> add_up_waits(const run::TimeRange& window, const Meter& meter);
  void make_sums(const IndexOptions& options);
  static const SliceSums* kept(const std::unique_ptr<SliceSums>& sums) {
    return sums && sums->count() > 0 ? sums.get() : nullptr;
  }

  std::string path_;
  std::unique_ptr<run::Reader> reader_;
  mutable ReaderPool pool_;
  analysis::AccountedRun accounted_;
  std::vector<NodeIndex> node_of_path_;
  std::vector<uint32_t> depth_, function_;  // by node; node 0 has function 0 and no meaning
  std::vector<bool> inlined_;
  std::vector<uint32_t> category_;
  bool has_waits_ = false;
  bool local_source_ = false;
  std::vector<bool> seen_;  // by thread
  std::unique_ptr<SliceSums> sums_, moments_;
  std::string report_json_;
  std::mutex report_mutex_;
};

}  // namespace assay::view
