// Varints in and out of bytes: LEB128, and zigzag for signed numbers.
//
// ByteReader never reads past its end: a malformed varint or a short buffer sets bad() and yields
// 0, so that a decoder may check once per row. Header-only because it is the codec's inner loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::run {

inline uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}
// Differences wrap, so that any two times have one.
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

class ByteWriter {
 public:
  void clear() { size_ = 0; }
  void varint(uint64_t value) {
    if (bytes_.size() - size_ < kMaxVarintBytes) bytes_.resize(bytes_.size() * 2 + 64);
    uint8_t* out = bytes_.data() + size_;
    while (value >= 0x80) {
      *out++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *out++ = static_cast<uint8_t>(value);
    size_ = static_cast<size_t>(out - bytes_.data());
  }
  void signed_varint(int64_t value) { varint(zigzag(value)); }
  void append(std::span<const uint8_t> more) {
    if (bytes_.size() - size_ < more.size()) bytes_.resize(bytes_.size() * 2 + more.size());
    std::copy(more.begin(), more.end(), bytes_.begin() + static_cast<ptrdiff_t>(size_));
    size_ += more.size();
  }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), size_}; }

 private:
  static constexpr size_t kMaxVarintBytes = 10;
  std::vector<uint8_t> bytes_;  // grown ahead of size_, so that a row costs one check per number
  size_t size_ = 0;
};

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (position_ == bytes_.size()) break;
      uint64_t byte = bytes_[position_++];
      if (shift == 63 && byte > 1) break;  // would not fit 64 bits
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad_ = true;
    return 0;
  }
  int64_t signed_varint() { return unzigzag(varint()); }
  uint8_t byte() {
    if (position_ < bytes_.size()) return bytes_[position_++];
    bad_ = true;
    return 0;
  }
  std::span<const uint8_t> take(uint64_t count) {
    if (count > remaining()) {
      bad_ = true;
      return {};
    }
    auto part = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return part;
  }
  size_t remaining() const { return bytes_.size() - position_; }
  bool bad() const { return bad_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  bool bad_ = false;
};

}  // namespace assay::run
