#include "view/columns.h"

#include <fmt/format.h>

namespace assay::view {

void Columns::put(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void Columns::close(std::string_view name, char encoding, size_t count, size_t bytes_before) {
  header_ += fmt::format("{}[\"{}\",\"{}\",{},{}]", header_.empty() ? "" : ",", name, encoding,
                         count, bytes_.size() - bytes_before);
}

void Columns::scalar(std::string_view name, int64_t value) {
  scalars_ += fmt::format("{}\"{}\":{}", scalars_.empty() ? "" : ",", name, value);
}

void Columns::add(std::string_view name, std::span<const uint64_t> values) {
  size_t before = bytes_.size();
  for (uint64_t value : values) put(value);
  close(name, 'u', values.size(), before);
}

void Columns::add(std::string_view name, std::span<const uint32_t> values) {
  size_t before = bytes_.size();
  for (uint32_t value : values) put(value);
  close(name, 'u', values.size(), before);
}

void Columns::add_deltas(std::string_view name, std::span<const int64_t> values) {
  size_t before = bytes_.size();
  uint64_t last = 0;
  for (int64_t value : values) {
    auto now = static_cast<uint64_t>(value);
    auto difference = static_cast<int64_t>(now - last);  // wraps as unsigned numbers do
    put(static_cast<uint64_t>(difference) << 1 ^ static_cast<uint64_t>(difference >> 63));
    last = now;
  }
  close(name, 'd', values.size(), before);
}

void Columns::add_strings(std::string_view name, std::span<const std::string_view> values) {
  size_t before = bytes_.size();
  for (std::string_view value : values) {
    put(value.size());
    bytes_ += value;
  }
  close(name, 's', values.size(), before);
}

std::string Columns::finish() const {
  std::string header = fmt::format("{{\"kind\":\"{}\",\"scalars\":{{{}}},\"columns\":[{}]}}", kind_,
                                   scalars_, header_);
  auto length = static_cast<uint32_t>(header.size());
  std::string all = "ASC1";
  for (int shift = 0; shift < 32; shift += 8) all += static_cast<char>(length >> shift);
  return all + header + bytes_;
}

}  // namespace assay::view
