#include "load/grpc/wire_reader.h"

#include "base/byte_reader.h"

namespace assay::load {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

void append_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace

bool for_each_field(std::string_view message, const std::function<void(const WireField&)>& visit) {
  ByteReader in(message);
  while (!in.at_end()) {
    uint64_t tag = in.varint();
    if (!in.ok() || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    WireField field;
    field.id = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case kVarint:
        field.number = in.varint();
        break;
      case kBytes:
        field.is_bytes = true;
        field.bytes = in.bytes(in.varint());
        break;
      case kFixed64:
        in.skip(8);
        break;
      case kFixed32:
        in.skip(4);
        break;
      default:
        return false;
    }
    if (!in.ok()) return false;
    bool shown = (tag & 7) == kVarint || (tag & 7) == kBytes;
    if (shown) visit(field);
  }
  return true;
}

void append_bytes_field(uint32_t id, std::string_view bytes, std::string& out) {
  append_varint(uint64_t{id} << 3 | kBytes, out);
  append_varint(bytes.size(), out);
  out += bytes;
}

}  // namespace assay::load
