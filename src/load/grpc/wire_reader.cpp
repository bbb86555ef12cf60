#include "load/grpc/wire_reader.h"

namespace assay::load {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

bool take_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

void append_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool skip(std::string_view& bytes, uint64_t size) {
  if (size > bytes.size()) return false;
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

bool for_each_field(std::string_view message, const std::function<void(const WireField&)>& visit) {
  while (!message.empty()) {
    uint64_t tag = 0, size = 0;
    if (!take_varint(message, tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    WireField field;
    field.id = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case kVarint:
        if (!take_varint(message, field.number)) return false;
        visit(field);
        break;
      case kBytes:
        if (!take_varint(message, size) || size > message.size()) return false;
        field.is_bytes = true;
        field.bytes = message.substr(0, size);
        message.remove_prefix(size);
        visit(field);
        break;
      case kFixed64:
        if (!skip(message, 8)) return false;
        break;
      case kFixed32:
        if (!skip(message, 4)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

void append_bytes_field(uint32_t id, std::string_view bytes, std::string& out) {
  append_varint(uint64_t{id} << 3 | kBytes, out);
  append_varint(bytes.size(), out);
  out += bytes;
}

}  // namespace assay::load
