// GrpcAnswer: the messages of one gRPC answer, counted as they stream in, and its status.
//
// Sans-IO: DATA bytes in pieces of any size. Messages are not decoded; one that claims to be longer
// than kMaxMessageBytes makes the answer bad. Not thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::load {

class GrpcAnswer {
 public:
  static constexpr uint32_t kMaxMessageBytes = 256U << 20;

  void begin() { *this = GrpcAnswer(); }
  // The number of messages that these bytes completed.
  uint32_t feed(std::string_view bytes);
  void set_status(std::string_view text);

  bool bad() const { return bad_; }
  bool between_messages() const { return prefix_size_ == 0; }
  int status() const { return status_; }  // -1: the server did not say
  uint32_t messages() const { return messages_; }

 private:
  uint8_t prefix_size_ = 0;  // bytes of the current prefix that are here
  bool bad_ = false;
  uint32_t length_ = 0;  // of the message; then what is left of it
  int status_ = -1;
  uint32_t messages_ = 0;
};

}  // namespace assay::load
