#include "formats/speedscope/speedscope_json.h"

#include <string>

namespace assay::formats {
namespace {

using Json = nlohmann::json;

// Nesting in root → "profiles" → profile → "samples" → sample, as the parser counts it.
constexpr int kRootKey = 1, kProfile = 2, kProfileKey = 3, kListItem = 4;

uint32_t frame_of(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= SpeedscopeLists::kNoFrame) {
    return SpeedscopeLists::kNoFrame;
  }
  return static_cast<uint32_t>(value.get<uint64_t>());
}

class Collector {
 public:
  explicit Collector(std::vector<SpeedscopeLists>& profiles) : profiles_(profiles) {}

  // What the parser found; false: it need not keep it.
  bool take(int depth, Json::parse_event_t event, const Json& item) {
    using enum Json::parse_event_t;
    if (event == key && depth == kRootKey) {
      in_profiles_ = item.get_ref<const std::string&>() == "profiles";
      if (in_profiles_) profiles_.clear();  // of a key that is there twice the last one holds
    }
    if (!in_profiles_) return true;
    if (event == key && depth == kProfileKey) list_ = list_of(item);
    if (event == object_start && depth == kProfile) {
      profiles_.emplace_back();
      list_ = List::other;
    }
    bool ends = event == value || event == array_end || event == object_end;
    if (!ends || depth != kListItem || list_ == List::other || profiles_.empty()) return true;
    add(item, profiles_.back());
    return false;
  }

 private:
  enum class List : uint8_t { other, samples, weights, events };

  static List list_of(const Json& key) {
    const auto& name = key.get_ref<const std::string&>();
    if (name == "samples") return List::samples;
    if (name == "weights") return List::weights;
    return name == "events" ? List::events : List::other;
  }

  void add(const Json& item, SpeedscopeLists& to) const {
    if (list_ == List::weights) {
      to.bad_sample = to.bad_sample || !item.is_number();
      to.weights.push_back(item.is_number() ? item.get<double>() : 0);
    } else if (list_ == List::samples) {
      to.bad_sample = to.bad_sample || !item.is_array();
      for (const Json& frame : item) to.sample_frames.push_back(frame_of(frame));
      to.sample_ends.push_back(to.sample_frames.size());
    } else {
      add_event(item, to);
    }
  }

  static void add_event(const Json& item, SpeedscopeLists& to) {
    auto at = item.find("at"), frame = item.find("frame"), type = item.find("type");
    if (at == item.end() || !at->is_number() || frame == item.end()) {
      to.bad_event = true;
      return;
    }
    bool opens = type != item.end() && *type == "O";
    to.events.push_back({at->get<double>(), frame_of(*frame), opens});
  }

  std::vector<SpeedscopeLists>& profiles_;
  bool in_profiles_ = false;
  List list_ = List::other;
};

}  // namespace

Result<SpeedscopeJson> parse_speedscope(const Input& input) {
  SpeedscopeJson parsed;
  Collector collector(parsed.profiles);
  try {
    parsed.root =
        Json::parse(input.bytes(), [&](int depth, Json::parse_event_t event, Json& value) {
          return collector.take(depth, event, value);
        });
  } catch (const Json::parse_error& error) {
    return input.fail_at(error.byte, "malformed JSON");
  }
  return parsed;
}

}  // namespace assay::formats
