#include "capture/devices/device_reader.h"

#include <algorithm>

#include <poll.h>

namespace assay::capture {

void DeviceReader::give_up(const std::string& why) {
  problem_ = why;
  asked_.reset();
  child_.reset();
}

std::optional<pid_t> DeviceReader::pid() const {
  if (!child_) return {};
  return child_->pid();
}

void DeviceReader::ask(TimeNs now) {
  if (asked_ || !problem_.empty()) return;
  if (!child_) {
    auto started = os::ChildProcess::start(options_.program, options_.arguments);
    if (!started) return give_up(started.error().what);
    child_.emplace(std::move(*started));
  }
  if (auto sent = child_->channel().send("?"); !sent) return give_up(child_->end());
  asked_ = now;
}

std::optional<DeviceAnswer> DeviceReader::take(TimeNs now) {
  if (!asked_) return {};
  pollfd one{child_->channel().fd(), POLLIN, 0};
  if (::poll(&one, 1, 0) <= 0) {
    if (now - *asked_ > options_.longest_silence_ns) give_up("no answer in time");
    return {};
  }
  // What has begun to come is small and comes at once; a sender that stops in between is given up.
  auto message = child_->channel().receive([] { return true; });
  if (!message) {
    std::string how = child_->end();
    give_up(message.error().what + " (" + how + ")");
    return {};
  }
  auto answer = answer_in(message->bytes);
  if (!answer) {
    give_up("an answer that is none");
    return {};
  }
  answer->time = std::clamp(answer->time, std::min(*asked_, now), now);
  asked_.reset();
  if (!answer->problem.empty()) give_up(answer->problem);
  return answer;
}

}  // namespace assay::capture
