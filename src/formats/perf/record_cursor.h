// RecordCursor: numbers and bytes from a record, one after another, never beyond its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay::formats {

class RecordCursor {
 public:
  explicit RecordCursor(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    std::string_view raw = bytes(sizeof value);
    if (!failed_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  uint64_t u64() { return number<uint64_t>(); }
  uint32_t u32() { return number<uint32_t>(); }

  std::string_view bytes(uint64_t size) {
    if (failed_ || size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  void skip(uint64_t size) { bytes(size); }
  // Up to the terminating zero, or to the end.
  std::string_view text() {
    std::string_view rest = failed_ ? std::string_view() : bytes_.substr(at_);
    return rest.substr(0, rest.find('\0'));
  }
  size_t left() const { return failed_ ? 0 : bytes_.size() - at_; }
  bool failed() const { return failed_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace assay::formats
