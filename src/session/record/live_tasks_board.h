// LiveTasksBoard: the consumer's latest list of living processes and threads, for the thread that
// polls counters. Threads: publish() by one, read() by any.
#pragma once

#include <mutex>

#include "capture/counters/counter_group.h"

namespace assay::session {

class LiveTasksBoard {
 public:
  void publish(capture::LiveTasks tasks) {
    std::lock_guard lock(mutex_);
    tasks_ = std::move(tasks);
  }
  capture::LiveTasks read() const {
    std::lock_guard lock(mutex_);
    return tasks_;
  }

 private:
  mutable std::mutex mutex_;
  capture::LiveTasks tasks_;
};

}  // namespace assay::session
