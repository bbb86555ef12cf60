// FrameNamer: names new frames in the background while the capture runs, so that little is left to
// do at its end.
//
// In: frames, from the thread that builds stacks. Out: Locations in the run file.
// Threads: add() from anywhere; one thread of its own does the work; finish() waits for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "model/stack.h"
#include "run/writer.h"
#include "symbol/symbolizer.h"

namespace assay::session {

class FrameNamer {
 public:
  FrameNamer(symbol::Symbolizer& symbolizer, run::Writer& writer);
  FrameNamer(const FrameNamer&) = delete;
  FrameNamer& operator=(const FrameNamer&) = delete;
  ~FrameNamer() { finish(); }

  void add(model::FrameId id, const model::Frame& frame);
  // Names all that was added and ends the thread.
  void finish();

 private:
  void loop();

  symbol::Symbolizer& symbolizer_;
  run::Writer& writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<model::FrameId, model::Frame>> waiting_;
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace assay::session
