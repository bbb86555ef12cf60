#include "evidence/stacks/frame_namer.h"

#include <chrono>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::evidence {
namespace {

constexpr std::chrono::milliseconds kNameAgainAfter(300);
constexpr size_t kMostUnnamed = 50'000;

}  // namespace

FrameNamer::FrameNamer(symbol::Symbolizer& symbolizer, Sink& sink)
    : symbolizer_(symbolizer), sink_(sink), thread_([this] { loop(); }) {}

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
    bool ending = false;
    {
      std::unique_lock lock(mutex_);
      auto woken = [this] { return !waiting_.empty() || finishing_; };
      if (unnamed_.empty()) {
        changed_.wait(lock, woken);
      } else {
        changed_.wait_for(lock, kNameAgainAfter, woken);
      }
      std::swap(work, waiting_);
      ending = finishing_;
    }
    bool quiet = work.empty();
    name(work);
    if (quiet) name_the_unnamed();
    if (quiet && ending) return;
  }
}

bool FrameNamer::name_frame(model::FrameId id, const model::Frame& frame) {
  // Asked first: a name that comes in between is then found the next time.
  bool named = symbolizer_.has_name(frame.module, frame.address);
  sink_.put_locations(id, symbolizer_.resolve(frame.module, frame.address));
  return named;
}

void FrameNamer::name_the_unnamed() {
  std::erase_if(unnamed_, [this](const auto& entry) {
    const auto& [id, frame] = entry;
    if (!symbolizer_.has_name(frame.module, frame.address)) return false;
    sink_.put_locations(id, symbolizer_.resolve(frame.module, frame.address));
    return true;
  });
}

void FrameNamer::name(Work& work) {
  for (const auto& [id, frame] : work.frames) {
    if (!name_frame(id, frame) && unnamed_.size() < kMostUnnamed) unnamed_.emplace_back(id, frame);
  }
  for (auto& [wanted, at] : work.data) {
    wanted.name = symbolizer_.resolve_data(at.module, at.address);
    if (!wanted.name.empty()) sink_.put_data_name(wanted);
  }
}

}  // namespace assay::evidence
