// PeriodicFlush: a thread that commits the run file once a second, and earlier when much has come
// in, so that a killed capture loses at most that much and memory stays bounded.
//
// Threads: owns one; error() from any. Failures: the first failed flush ends the thread and is
// kept: a full disk, usually. What was committed before stays readable.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "run/writer.h"

namespace assay::session {

class PeriodicFlush {
 public:
  // `complete_until` tells up to which time the writer has everything.
  PeriodicFlush(run::Writer& writer, std::function<TimeNs()> complete_until);
  PeriodicFlush(const PeriodicFlush&) = delete;
  PeriodicFlush& operator=(const PeriodicFlush&) = delete;
  ~PeriodicFlush() { stop(); }

  void stop();
  std::optional<Error> error();

 private:
  void loop();

  run::Writer& writer_;
  std::function<TimeNs()> complete_until_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace assay::session
