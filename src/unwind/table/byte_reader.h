// ByteReader: reads foreign bytes forward, never outside them. After a read past the end, ok() is
// false and every read gives 0, so that a parser may check once per record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace assay::unwind {

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes, size_t position = 0)
      : bytes_(bytes), position_(position), ok_(position <= bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return !ok_ || position_ >= bytes_.size(); }
  size_t position() const { return position_; }
  size_t left() const { return ok_ ? bytes_.size() - position_ : 0; }

  template <class T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }
  uint16_t u16() { return fixed<uint16_t>(); }
  uint32_t u32() { return fixed<uint32_t>(); }
  uint64_t u64() { return fixed<uint64_t>(); }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      uint8_t byte = u8();
      if (!ok_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      uint8_t byte = u8();
      if (!ok_) return 0;
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte & 0x80) continue;
      if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  std::span<const std::byte> take(uint64_t count) {
    if (left() < count) {
      ok_ = false;
      return {};
    }
    auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }
  void seek(size_t position) {
    ok_ = position <= bytes_.size();
    if (ok_) position_ = position;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace assay::unwind
