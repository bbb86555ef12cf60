// OpeningRun: a run that is laid out on a thread of its own, so that the page can be opened
// meanwhile and told how far it is.
//
// In: start() with a run's path; it fails at once where the file cannot be opened or has nothing of
// the selection. Out: index() waits until the run is laid out. Threads: any may ask. Failures: the reader's; those that come
// while all of the run is read are index()'s. The destructor stops what is under way.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "run/selection/selection.h"
#include "view/run_index.h"

namespace assay::view {

class OpeningRun {
 public:
  // `selection` is what the page shows first; `local_source`: see IndexOptions.
  static Result<std::unique_ptr<OpeningRun>> start(const std::string& path,
                                                   const run::Selection& selection = {},
                                                   bool local_source = false);
  // One that is laid out already.
  explicit OpeningRun(std::unique_ptr<RunIndex> index);
  ~OpeningRun();
  OpeningRun(const OpeningRun&) = delete;
  OpeningRun& operator=(const OpeningRun&) = delete;

  const std::string& path() const { return path_; }
  // What stands behind the page's address for that selection (page_fragment()).
  const std::string& fragment() const { return fragment_; }
  // True: it is laid out, or failed.
  bool wait_for(std::chrono::milliseconds patience) const;
  double progress() const { return permille_ / 1000.0; }
  Result<RunIndex*> index() const;

 private:
  explicit OpeningRun(std::string path) : path_(std::move(path)) {}
  void lay_out(std::unique_ptr<run::Reader> reader, bool local_source);

  std::string path_, fragment_;
  std::atomic<int> permille_{0};
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool ended_ = false;
  Error error_;
  std::unique_ptr<RunIndex> index_;
  std::thread thread_;
};

}  // namespace assay::view
