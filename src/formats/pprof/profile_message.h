// A decoded profile.proto, as tables with ids resolved to indices.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/import/input.h"

namespace assay::formats {

struct ProfileMessage {
  struct ValueType {
    std::string_view type, unit;
  };
  struct Mapping {
    uint64_t id = 0, start = 0, limit = 0, offset = 0;
    std::string_view file, build_id;
  };
  struct Function {
    uint64_t id = 0;
    std::string_view name, system_name, file;
    uint64_t start_line = 0;
  };
  struct Line {
    uint64_t function = 0;  // id
    uint64_t line = 0;
  };
  struct Location {
    uint64_t id = 0, mapping = 0, address = 0;
    std::vector<Line> lines;
  };
  struct Label {
    std::string_view key, text;
    int64_t number = 0;
  };

  std::vector<ValueType> types;
  std::vector<Mapping> mappings;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::unordered_map<uint64_t, size_t> mapping_of, function_of, location_of;  // by id
  std::vector<std::string_view> strings;
  std::vector<std::pair<std::string_view, size_t>> samples;  // message, offset: read as needed
  int64_t time_ns = 0, duration_ns = 0, period = 0;
  ValueType period_type;
  std::string_view default_type;

  std::string_view string(uint64_t index) const {
    return index < strings.size() ? strings[index] : std::string_view();
  }
};

Result<ProfileMessage> decode_profile(const Input& input);

// One sample of it.
struct ProfileSample {
  std::vector<uint64_t> locations;  // ids, leaf first
  std::vector<int64_t> values;
  std::vector<ProfileMessage::Label> labels;
};
// Replaces `sample`; false when the bytes are malformed.
bool decode_sample(const ProfileMessage& profile, std::string_view bytes, ProfileSample& sample);

}  // namespace assay::formats
