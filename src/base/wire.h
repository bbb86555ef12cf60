// WireWriter, WireReader: the fields of a message between Assay and a process of its own, in order.
//
// Numbers are little-endian, texts have their length before them. The other side may be under an
// attacker's control: every length is checked against what is left, and after the first wrong field
// everything reads as empty and ok() is false.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_reader.h"

namespace assay {

class WireWriter {
 public:
  WireWriter& u8(uint8_t value) { return raw(&value, sizeof value); }
  WireWriter& u32(uint32_t value) { return raw(&value, sizeof value); }
  WireWriter& u64(uint64_t value) { return raw(&value, sizeof value); }
  WireWriter& text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    return raw(value.data(), value.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  WireWriter& raw(const void* at, size_t count) {
    bytes_.append(static_cast<const char*>(at), count);
    return *this;
  }
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : in_(bytes) {}

  uint8_t u8() { return in_.u8(); }
  uint32_t u32() { return in_.u32(); }
  uint64_t u64() { return in_.u64(); }
  std::string text() { return std::string(in_.bytes(in_.u32())); }
  // How many items of at least `least_bytes` follow; a count that cannot be true is wrong.
  uint32_t count(size_t least_bytes) {
    uint32_t items = in_.u32();
    if (items <= in_.left() / least_bytes) return items;
    in_.fail();
    return 0;
  }
  bool ok() const { return in_.ok(); }
  // Nothing wrong, and nothing left.
  bool done() const { return in_.ok() && in_.at_end(); }

 private:
  ByteReader in_;
};

}  // namespace assay
