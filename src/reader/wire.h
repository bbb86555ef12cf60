// WireWriter, WireReader: the fields of a message between Assay and its reader process, in order.
//
// Numbers are little-endian, texts have their length before them. The other side may be under an attacker's control:
// every length is checked against what is left, and after the first wrong field everything reads as empty and ok() is
// false.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace assay::reader {

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
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t u8() { return number<uint8_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  std::string text() {
    uint32_t size = u32();
    std::string_view bytes = take(size);
    return std::string(bytes);
  }
  // How many items of at least `least_bytes` follow; a count that cannot be true is wrong.
  uint32_t count(size_t least_bytes) {
    uint32_t items = u32();
    if (items > rest_.size() / least_bytes) return fail(), 0;
    return items;
  }
  bool ok() const { return ok_; }
  // Nothing wrong, and nothing left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  template <class Number>
  Number number() {
    Number value{};
    std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view take(size_t size) {
    if (size > rest_.size()) return fail(), std::string_view();
    std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace assay::reader
