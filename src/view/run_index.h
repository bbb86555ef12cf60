// RunIndex: one open run, laid out the way the page asks for it.
//
// Call paths of functions become nodes in preorder (node 0 is the root of all), so that a subtree
// is a range of numbers and a tree travels as two columns: depth and function. Owns the reader.
// Threads: what open() laid out (tree, nodes, categories) never changes and may be read by any
// thread; calls that read the run exclude one another through lock(): the streams of a Reader may
// not run twice at once. Failures: the reader's, at open().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analysis/call_tree.h"
#include "analysis/run_rules.h"
#include "analysis/wait_classifier.h"
#include "base/result.h"
#include "run/reader.h"
#include "view/thread_state.h"

namespace assay::view {

using NodeIndex = uint32_t;

class RunIndex {
 public:
  static Result<std::unique_ptr<RunIndex>> open(const std::string& path);
  // Of any reader; `path` is only shown.
  static Result<std::unique_ptr<RunIndex>> make(std::unique_ptr<run::Reader> reader,
                                                const std::string& path);

  const std::string& path() const { return path_; }
  const run::Reader& reader() const { return *reader_; }
  const run::Contents& contents() const { return reader_->contents(); }
  const analysis::CallTree& tree() const { return tree_; }
  TimeNs begin_ns() const { return contents().info.window_begin_ns; }
  TimeNs end_ns() const { return contents().info.window_end_ns; }
  int64_t window_ns() const { return end_ns() > begin_ns() ? end_ns() - begin_ns() : 0; }
  bool has_waits() const { return has_waits_; }
  // False: not one sample or wait in the window, so nothing says that it ran.
  bool seen(model::ThreadId thread) const { return seen_[thread.value]; }

  size_t node_count() const { return depth_.size(); }
  const std::vector<uint32_t>& depths() const { return depth_; }
  const std::vector<uint32_t>& functions() const { return function_; }
  const std::vector<bool>& inlined() const { return inlined_; }
  // By node: index into category_names().
  const std::vector<uint32_t>& categories() const { return category_; }
  std::vector<std::string_view> category_names() const { return rules_.category_names(); }
  NodeIndex node_of(model::StackId stack) const { return node_of_path_[tree_.path_of(stack)]; }
  // user or kernel, by the leaf of the stack.
  ThreadState running_state(model::StackId stack) const;
  ThreadState waiting_state(const model::Wait& wait);  // idle, or blocked on something

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // The report of the whole run as JSON, computed once.
  Result<std::string> report_json();

 private:
  RunIndex(std::unique_ptr<run::Reader> reader, std::string path);
  void lay_out();
  void mark_inlined();
  Result<void> look_once();

  std::string path_;
  std::unique_ptr<run::Reader> reader_;
  analysis::CallTree tree_;
  analysis::WaitClassifier classifier_;
  analysis::RunRules rules_;
  std::vector<NodeIndex> node_of_path_;
  std::vector<uint32_t> depth_, function_;  // by node; node 0 has function 0 and no meaning
  std::vector<bool> inlined_;
  std::vector<uint32_t> category_;
  bool has_waits_ = false;
  std::vector<bool> seen_;  // by thread
  std::string report_json_;
  std::mutex mutex_;
};

}  // namespace assay::view
