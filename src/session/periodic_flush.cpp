#include "session/periodic_flush.h"

#include <chrono>

#include <pthread.h>

namespace assay::session {

PeriodicFlush::PeriodicFlush(run::Writer& writer, std::function<TimeNs()> complete_until)
    : writer_(writer), complete_until_(std::move(complete_until)), thread_([this] { loop(); }) {}

void PeriodicFlush::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<Error> PeriodicFlush::error() {
  std::lock_guard lock(mutex_);
  return error_;
}

void PeriodicFlush::loop() {
  pthread_setname_np(pthread_self(), "assay-writer");
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
    lock.unlock();
    auto flushed = writer_.flush(complete_until_());
    lock.lock();
    if (!flushed) {
      error_ = flushed.error();
      return;
    }
  }
}

}  // namespace assay::session
