// FrameNamer: names new frames in the background while the capture runs, so that little is left to
// do at its end.
//
// In: frames, and addresses of data that threads wait on, from the thread that builds stacks. Out:
// Locations and DataNames in the sink. Code made at run time often gets its name a moment after
// it first ran, so what has none yet is asked for again. Threads: add() from anywhere; one thread
// of its own does the work; finish() waits for it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "evidence/sink.h"
#include "model/data_name.h"
#include "model/stack.h"
#include "symbol/symbolizer.h"

namespace assay::evidence {

class FrameNamer {
 public:
  FrameNamer(symbol::Symbolizer& symbolizer, Sink& sink);
  FrameNamer(const FrameNamer&) = delete;
  FrameNamer& operator=(const FrameNamer&) = delete;
  ~FrameNamer() { finish(); }

  void add(model::FrameId id, const model::Frame& frame);
  // `at` is the module that may hold the data, and the address in it as resolve_data() wants it.
  void add_data(const model::DataName& wanted, const model::Frame& at);
  // Names all that was added and ends the thread.
  void finish();

 private:
  struct Work {
    std::vector<std::pair<model::FrameId, model::Frame>> frames;
    std::vector<std::pair<model::DataName, model::Frame>> data;
    bool empty() const { return frames.empty() && data.empty(); }
  };
  void loop();
  void name(Work& work);
  bool name_frame(model::FrameId id, const model::Frame& frame);  // false: it may get a name yet
  void name_the_unnamed();

  symbol::Symbolizer& symbolizer_;
  Sink& sink_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Work waiting_;
  std::vector<std::pair<model::FrameId, model::Frame>> unnamed_;  // the namer's thread's alone
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace assay::evidence
