// Varints in and out of bytes: LEB128, and zigzag for signed numbers.
//
// A column of varints is stored in planes: the first bytes of all its numbers, then the second
// bytes of those that have one, and so on. A plane's bytes are alike, which is what zstd needs.
// Plain numbers are read by base/byte_reader.h. Header-only because it is the codec's inner loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_reader.h"

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

inline constexpr size_t kMaxVarintBytes = 10;

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

  // Appends whole varints in planes; returns the size of each plane.
  std::array<size_t, kMaxVarintBytes> append_planes(std::span<const uint8_t> varints) {
    std::array<size_t, kMaxVarintBytes> sizes{}, at{};
    size_t plane = 0;
    for (uint8_t byte : varints) {
      ++sizes[plane];
      plane = byte >= 0x80 ? plane + 1 : 0;
    }
    size_t end = size_;
    for (size_t i = 0; i < kMaxVarintBytes; ++i) {
      at[i] = end;
      end += sizes[i];
    }
    if (bytes_.size() < end) bytes_.resize(bytes_.size() * 2 + varints.size());
    for (uint8_t byte : varints) {
      bytes_[at[plane]++] = byte;
      plane = byte >= 0x80 ? plane + 1 : 0;
    }
    size_ = end;
    return sizes;
  }

 private:
  std::vector<uint8_t> bytes_;  // grown ahead of size_, so that a row costs one check per number
  size_t size_ = 0;
};

inline int64_t signed_varint(ByteReader& in) {
  return unzigzag(in.varint());
}

// A column in planes. start() proves that it holds exactly `count` numbers; next() may then be
// called that often, and checks nothing.
class PlaneReader {
 public:
  bool start(std::span<const uint8_t> bytes, size_t count) {
    const uint8_t* end = bytes.data() + bytes.size();
    const uint8_t* plane = bytes.data();
    for (size_t i = 0; i < kMaxVarintBytes; ++i) {
      if (count > static_cast<size_t>(end - plane)) return false;
      at_[i] = plane;
      size_t longer = 0;
      for (size_t j = 0; j < count; ++j) longer += plane[j] >> 7;
      // The tenth byte holds the 64th bit and nothing else.
      if (i + 1 == kMaxVarintBytes && std::any_of(plane, plane + count, above_one)) return false;
      plane += count;
      count = longer;
    }
    return plane == end;
  }
  uint64_t next() {
    uint64_t byte = *at_[0]++;
    uint64_t value = byte & 0x7f;
    for (size_t i = 1; byte >= 0x80; ++i) {
      byte = *at_[i]++;
      value |= (byte & 0x7f) << (7 * i);
    }
    return value;
  }
  int64_t next_signed() { return unzigzag(next()); }

 private:
  static bool above_one(uint8_t byte) { return byte > 1; }
  std::array<const uint8_t*, kMaxVarintBytes> at_{};
};

}  // namespace assay::run
