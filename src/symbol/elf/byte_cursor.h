// ByteCursor: reads foreign bytes in order and never past their end.
//
// A read that does not fit yields zero and makes the cursor fail for good, so that a parser may
// read a whole record and check ok() once. Little-endian, as every target of Assay is. A plain
// value.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay::symbol {

class ByteCursor {
 public:
  ByteCursor() = default;
  explicit ByteCursor(std::string_view bytes, uint64_t offset = 0) : bytes_(bytes) { seek(offset); }

  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  uint64_t offset() const { return at_; }
  uint64_t remaining() const { return bytes_.size() - at_; }
  std::string_view all() const { return bytes_; }

  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }
  void seek(uint64_t offset) {
    if (offset > bytes_.size()) return fail();
    at_ = offset;
  }
  void skip(uint64_t count) {
    if (count > remaining()) return fail();
    at_ += count;
  }

  template <class T>
  T fixed() {
    T value{};
    if (remaining() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }
  uint16_t u16() { return fixed<uint16_t>(); }
  uint32_t u32() { return fixed<uint32_t>(); }
  uint64_t u64() { return fixed<uint64_t>(); }
  uint32_t u24() {
    uint32_t low = u16();
    return low | uint32_t{u8()} << 16;
  }
  // An unsigned number of 1, 2, 4 or 8 bytes; any other width fails.
  uint64_t sized(unsigned width) {
    switch (width) {
      case 1:
        return u8();
      case 2:
        return u16();
      case 4:
        return u32();
      case 8:
        return u64();
      default:
        fail();
        return 0;
    }
  }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_end() || shift > 70) {
        fail();
        return 0;
      }
      auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      if (at_end() || shift > 70) {
        fail();
        return 0;
      }
      auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte & 0x80) continue;
      if (shift < 64 && byte & 0x40) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }

  std::string_view bytes(uint64_t count) {
    if (count > remaining()) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  // The text up to the next NUL, which is consumed; fails when there is none.
  std::string_view text() {
    size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

}  // namespace assay::symbol
