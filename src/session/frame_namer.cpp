#include "session/frame_namer.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::session {

FrameNamer::FrameNamer(symbol::Symbolizer& symbolizer, run::Writer& writer)
    : symbolizer_(symbolizer), writer_(writer), thread_([this] { loop(); }) {}

void FrameNamer::add(model::FrameId id, const model::Frame& frame) {
  std::lock_guard lock(mutex_);
  waiting_.frames.emplace_back(id, frame);
  changed_.notify_one();
}

void FrameNamer::add_data(const model::DataName& wanted, const model::Frame& at) {
  std::lock_guard lock(mutex_);
  waiting_.data.emplace_back(wanted, at);
  changed_.notify_one();
}

void FrameNamer::finish() {
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void FrameNamer::loop() {
  pthread_setname_np(pthread_self(), "assay-namer");
  // The target's time is worth more than names a moment earlier.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !waiting_.empty() || finishing_; });
      std::swap(work, waiting_);
      if (work.empty()) return;
    }
    name(work);
  }
}

void FrameNamer::name(Work& work) {
  for (const auto& [id, frame] : work.frames) {
    writer_.put_locations(id, symbolizer_.resolve(frame.module, frame.address));
  }
  for (auto& [wanted, at] : work.data) {
    wanted.name = symbolizer_.resolve_data(at.module, at.address);
    if (!wanted.name.empty()) writer_.put_data_name(wanted);
  }
}

}  // namespace assay::session
