// The protobuf wire format, as far as profile.proto needs it: varints and length-delimited fields.
//
// Written by hand: generated code would add a compiler and a library to the build, and building
// millions of message objects costs several times the encoding itself.
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::formats {

class WireWriter {
 public:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  // Zero is the default of every field of profile.proto and is left out.
  void number(int field, uint64_t value) {
    if (value == 0) return;
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
  }
  void number(int field, int64_t value) { number(field, static_cast<uint64_t>(value)); }
  void bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const WireWriter& value) { bytes(field, value.bytes_); }
  const std::string& str() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// Reads fields one after another; every length is checked. After failed() nothing more is read.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes, size_t offset = 0) : bytes_(bytes), base_(offset) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // of a varint or fixed field
    std::string_view bytes;  // of a length-delimited field
    bool is_bytes = false;
    size_t offset = 0;  // of the field's content in the whole file
  };

  std::optional<Field> next() {
    if (failed_ || at_ == bytes_.size()) return std::nullopt;
    uint64_t key = varint();
    Field field;
    field.number = static_cast<uint32_t>(key >> 3);
    if (field.number == 0) failed_ = true;
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.is_bytes = true;
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        failed_ = true;
    }
    field.offset = base_ + at_ - field.bytes.size();
    if (failed_) return std::nullopt;
    return field;
  }
  // One number of a packed field; nullopt at its end.
  std::optional<uint64_t> next_packed() {
    if (failed_ || at_ == bytes_.size()) return std::nullopt;
    uint64_t value = varint();
    if (failed_) return std::nullopt;
    return value;
  }
  bool failed() const { return failed_; }
  size_t offset() const { return base_ + at_; }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view take(uint64_t size) {
    if (failed_ || size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    std::string_view raw = take(size);
    for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(raw[i]);
    return value;
  }

  std::string_view bytes_;
  size_t base_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace assay::formats
