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

#include "base/byte_reader.h"

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
  explicit WireReader(std::string_view bytes, size_t offset = 0) : in_(bytes), base_(offset) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // of a varint or fixed field
    std::string_view bytes;  // of a length-delimited field
    bool is_bytes = false;
    size_t offset = 0;  // of the field's content in the whole file
  };

  std::optional<Field> next() {
    if (in_.at_end()) return std::nullopt;
    uint64_t key = in_.varint();
    Field field;
    field.number = static_cast<uint32_t>(key >> 3);
    if (field.number == 0) in_.fail();
    switch (key & 7) {
      case 0:
        field.value = in_.varint();
        break;
      case 1:
        field.value = in_.u64();
        break;
      case 2:
        field.is_bytes = true;
        field.bytes = in_.bytes(in_.varint());
        break;
      case 5:
        field.value = in_.u32();
        break;
      default:
        in_.fail();
    }
    field.offset = base_ + in_.offset() - field.bytes.size();
    if (!in_.ok()) return std::nullopt;
    return field;
  }
  // One number of a packed field; nullopt at its end.
  std::optional<uint64_t> next_packed() {
    if (in_.at_end()) return std::nullopt;
    uint64_t value = in_.varint();
    if (!in_.ok()) return std::nullopt;
    return value;
  }
  bool failed() const { return !in_.ok(); }
  size_t offset() const { return base_ + in_.failed_at(); }

 private:
  ByteReader in_;
  size_t base_;
};

}  // namespace assay::formats
