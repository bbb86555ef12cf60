#include "load/grpc/grpc_answer.h"

#include <algorithm>
#include <charconv>

namespace assay::load {
namespace {

constexpr uint8_t kPrefixBytes = 5;

}  // namespace

uint32_t GrpcAnswer::feed(std::string_view bytes) {
  uint32_t before = messages_;
  while (!bytes.empty() && !bad_) {
    if (prefix_size_ < kPrefixBytes) {
      auto byte = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (prefix_size_ == 0) {
        bad_ = byte > 1;  // 0 uncompressed, 1 compressed; other values are not defined
      } else {
        length_ = length_ << 8 | byte;
      }
      if (++prefix_size_ < kPrefixBytes) continue;
      if (length_ > kMaxMessageBytes) bad_ = true;
    } else {
      auto taken = static_cast<uint32_t>(std::min<size_t>(length_, bytes.size()));
      bytes.remove_prefix(taken);
      length_ -= taken;
    }
    if (prefix_size_ == kPrefixBytes && length_ == 0 && !bad_) {
      ++messages_;
      prefix_size_ = 0;
    }
  }
  return messages_ - before;
}

void GrpcAnswer::set_status(std::string_view text) {
  int status = 0;
  auto [end, result] = std::from_chars(text.data(), text.data() + text.size(), status);
  bool whole = result == std::errc() && end == text.data() + text.size() && status >= 0;
  if (whole) status_ = status;
}

}  // namespace assay::load
