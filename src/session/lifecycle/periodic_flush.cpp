#include "session/lifecycle/periodic_flush.h"

#include <chrono>

#include <pthread.h>

#include "base/clock.h"

namespace assay::session {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

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
  TimeNs due = monotonic_ns() + kNsPerSecond;
  while (!changed_.wait_for(lock, kTick, [this] { return stopping_; })) {
    if (monotonic_ns() < due && !writer_.is_filling()) continue;
    due = monotonic_ns() + kNsPerSecond;
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
