#include "view/data/columns.h"

#include <fmt/format.h>

namespace assay::view {

namespace {

constexpr size_t kLongestVarint = 10;

char* put(char* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<char>(value);
  return at;
}

}  // namespace

// Columns have millions of numbers: their room is made once, not number by number.
template <class Values, class Encode>
void Columns::put_all(const Values& values, const Encode& encode) {
  size_t before = bytes_.size();
  bytes_.resize(before + values.size() * kLongestVarint);
  char* at = bytes_.data() + before;
  for (auto value : values) at = put(at, encode(value));
  bytes_.resize(static_cast<size_t>(at - bytes_.data()));
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
  put_all(values, [](uint64_t value) { return value; });
  close(name, 'u', values.size(), before);
}

void Columns::add(std::string_view name, std::span<const uint32_t> values) {
  size_t before = bytes_.size();
  put_all(values, [](uint32_t value) { return uint64_t{value}; });
  close(name, 'u', values.size(), before);
}

void Columns::add_deltas(std::string_view name, std::span<const int64_t> values) {
  size_t before = bytes_.size();
  uint64_t last = 0;
  put_all(values, [&](int64_t value) {
    auto now = static_cast<uint64_t>(value);
    auto difference = static_cast<int64_t>(now - last);  // wraps as unsigned numbers do
    last = now;
    return static_cast<uint64_t>(difference) << 1 ^ static_cast<uint64_t>(difference >> 63);
  });
  close(name, 'd', values.size(), before);
}

void Columns::add_strings(std::string_view name, std::span<const std::string_view> values) {
  size_t before = bytes_.size();
  for (std::string_view value : values) {
    char length[kLongestVarint];
    bytes_.append(length, static_cast<size_t>(put(length, value.size()) - length));
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
  all.reserve(all.size() + header.size() + bytes_.size());
  return all.append(header).append(bytes_);
}

}  // namespace assay::view
