// Channel: messages with descriptors between two processes that do not trust one another.
//
// A message is a block of bytes and a few descriptors, over a stream socket: its length, then its
// bytes; descriptors travel with the first byte. Nothing of a message is believed: lengths are
// bounded, descriptors beyond the bound are closed. Threads: one at a time. Failures: an Error when
// the other side is gone, is too slow, or sends what is no message; the channel is then of no more
// use.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

struct Message {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
};

class Channel {
 public:
  static constexpr size_t kMostBytes = 256u << 20;
  static constexpr size_t kMostDescriptors = 4;

  Channel() = default;
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}
  static Result<std::pair<Channel, Channel>> pair();

  bool valid() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }

  Result<void> send(const std::string& bytes, const std::vector<int>& descriptors = {});
  // `give_up` is asked every 50 ms while nothing comes; true ends the wait with an Error.
  Result<Message> receive(const std::function<bool()>& give_up = nullptr);

 private:
  Result<void> wait_readable(const std::function<bool()>& give_up);
  Result<size_t> receive_some(char* into, size_t bytes, std::vector<UniqueFd>& descriptors);

  UniqueFd socket_;
};

}  // namespace assay::os
