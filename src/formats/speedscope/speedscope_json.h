// SpeedscopeJson: a speedscope file's JSON with the long lists of its profiles as plain numbers.
//
// Samples, weights and events are most of a file, and as JSON values they would take twenty times
// their text. They are taken out while the text is parsed; all else stays JSON. Failures: malformed
// JSON, with its offset. What has not the form of the schema is marked in its profile.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/import/input.h"

namespace assay::formats {

struct SpeedscopeLists {
  struct Event {
    double at = 0;
    uint32_t frame = 0;
    bool opens = false;
  };
  static constexpr uint32_t kNoFrame = UINT32_MAX;  // of a number that no frame can have

  std::vector<uint32_t> sample_frames;  // root first, of all samples
  std::vector<uint64_t> sample_ends;    // where each sample ends in them
  std::vector<double> weights;
  std::vector<Event> events;
  bool bad_sample = false, bad_event = false;
};

struct SpeedscopeJson {
  nlohmann::json root;
  std::vector<SpeedscopeLists> profiles;  // by their place among the root's
};

Result<SpeedscopeJson> parse_speedscope(const Input& input);

}  // namespace assay::formats
