// Protobuf's wire format, as far as the reflection messages need it: fields by number, and a writer
// for length-delimited ones. Bounds-checked; malformed bytes end the walk with false.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace assay::load {

// One field: `bytes` of a length-delimited one, `number` of a varint; the others are passed over.
struct WireField {
  uint32_t id = 0;
  bool is_bytes = false;
  uint64_t number = 0;
  std::string_view bytes;
};

// Visits every field; false when the bytes are not a message.
bool for_each_field(std::string_view message, const std::function<void(const WireField&)>& visit);

void append_bytes_field(uint32_t id, std::string_view bytes, std::string& out);

}  // namespace assay::load
