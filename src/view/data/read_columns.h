// Reads Columns back, for tests: what the page does in TypeScript.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::view {

struct ReadTable {
  nlohmann::json header;
  std::map<std::string, std::vector<int64_t>> numbers;
  std::map<std::string, std::vector<std::string>> texts;
};

inline uint64_t read_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "a number is cut off";
  return value;
}

inline ReadTable read_columns(const std::string& bytes) {
  ReadTable table;
  EXPECT_EQ(bytes.substr(0, 4), "ASC1");
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes[4 + i]);
  table.header = nlohmann::json::parse(bytes.substr(8, length));
  size_t at = 8 + length;
  for (const auto& column : table.header["columns"]) {
    std::string name = column[0], encoding = column[1];
    size_t end = at + column[3].get<size_t>();
    int64_t last = 0;
    for (size_t i = 0; i < column[2].get<size_t>(); ++i) {
      uint64_t value = read_varint(bytes, at);
      if (encoding == "s") {
        table.texts[name].push_back(bytes.substr(at, value));
        at += value;
      } else if (encoding == "d") {
        last += static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
        table.numbers[name].push_back(last);
      } else {
        table.numbers[name].push_back(static_cast<int64_t>(value));
      }
    }
    EXPECT_EQ(at, end) << name;
    at = end;
  }
  EXPECT_EQ(at, bytes.size());
  return table;
}

}  // namespace assay::view
