// Reads untrusted bytes forward, inside bounds: beyond the end every read gives 0 and ok() stays
// false. Not the ByteReader of src/base: this runs inside the target, where no run-time library of
// C++ is linked, and that one's string views call into it when a bound is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace assay::inject {

class CfiReader {
 public:
  CfiReader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end), ok_(at <= end) {}

  bool ok() const { return ok_; }
  bool at_end() const { return !ok_ || at_ == end_; }
  const uint8_t* at() const { return at_; }
  size_t left() const { return ok_ ? static_cast<size_t>(end_ - at_) : 0; }

  template <class T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      uint8_t byte = u8();
      if (!ok_) return 0;
      if (shift < 64) value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      uint8_t byte = u8();
      if (!ok_) return 0;
      if (shift < 64) value |= uint64_t(byte & 0x7f) << shift;
      shift += 7;
      if (byte & 0x80) continue;
      if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  // A part of `bytes` bytes; this reader continues after it.
  CfiReader part(uint64_t bytes) {
    if (left() < bytes) {
      ok_ = false;
      return CfiReader(end_, end_);
    }
    CfiReader inner(at_, at_ + bytes);
    at_ += bytes;
    return inner;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_;
};

}  // namespace assay::inject
