// ByteReader: reads foreign bytes forward and never past their end.
//
// In: bytes that others made, which must outlive the reader. Out: numbers (little-endian, as every
// target of Assay is), texts and parts. A read that does not fit gives 0 or nothing and makes the
// reader fail for good: ok() is false, left() is 0. So a parser may read a whole record and check
// ok() once. A plain value without threads. Header-only: it is the inner loop of the DWARF, CFI
// and block readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace assay {

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes, uint64_t offset = 0) : bytes_(bytes) { seek(offset); }
  explicit ByteReader(std::span<const std::byte> bytes, uint64_t offset = 0)
      : ByteReader(text_of(bytes.data(), bytes.size()), offset) {}
  explicit ByteReader(std::span<const uint8_t> bytes, uint64_t offset = 0)
      : ByteReader(text_of(bytes.data(), bytes.size()), offset) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  uint64_t offset() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  // Where reading ended before its time; offset() while it has not.
  uint64_t failed_at() const { return ok_ ? at_ : failed_at_; }
  void fail() {
    if (ok_) failed_at_ = at_;
    ok_ = false;
    at_ = bytes_.size();
  }
  // A reader that has failed stays failed.
  void seek(uint64_t offset) {
    if (!ok_ || offset > bytes_.size()) return fail();
    at_ = offset;
  }
  void skip(uint64_t count) {
    if (count > left()) return fail();
    at_ += count;
  }

  template <class T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
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

  // LEB128 as DWARF has it: bits beyond the 64th are dropped, padding is allowed up to 11 bytes.
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
  // LEB128 as protobuf and the run file have it: a number that does not fit 64 bits fails.
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !at_end(); shift += 7) {
      uint64_t byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }

  std::string_view bytes(uint64_t count) {
    if (count > left()) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  // The same as spans.
  std::span<const std::byte> take(uint64_t count) { return std::as_bytes(std::span(bytes(count))); }
  std::span<const uint8_t> octets(uint64_t count) {
    std::string_view part = bytes(count);
    return {reinterpret_cast<const uint8_t*>(part.data()), part.size()};
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
  // The text up to the next NUL or the end; everything that is left is consumed.
  std::string_view last_text() {
    std::string_view rest = bytes(left());
    return rest.substr(0, rest.find('\0'));
  }

 private:
  static std::string_view text_of(const void* at, size_t size) {
    return {static_cast<const char*>(at), size};
  }

  std::string_view bytes_;
  uint64_t at_ = 0;
  uint64_t failed_at_ = 0;
  bool ok_ = true;
};

}  // namespace assay
