#include "formats/speedscope/read_speedscope.h"

#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "formats/export/metric.h"
#include "formats/speedscope/speedscope_json.h"
#include "formats/export/wait_leaf.h"

namespace assay::formats {
namespace {

using Json = nlohmann::json;

struct Unit {
  double ns = 0;
  std::string other;  // what it is when it is no time
};

Unit unit_of(const std::string& name) {
  if (name == "nanoseconds") return {1, ""};
  if (name == "microseconds") return {1e3, ""};
  if (name == "milliseconds") return {1e6, ""};
  if (name == "seconds") return {1e9, ""};
  return {1, name == "bytes" ? "bytes" : "samples"};
}

std::string text_of(const Json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string()
             ? std::string(stored(it->get_ref<const std::string&>()))
             : "";
}

class SpeedscopeReader {
 public:
  SpeedscopeReader(const Input& input, const ReadOptions& options, RunBuilder& builder)
      : input_(input), options_(options), builder_(builder) {}

  Result<void> read() {
    if (input_.bytes().size() > kMostSpeedscopeBytes) {
      return input_.fail_at(kMostSpeedscopeBytes, "more JSON than is read");
    }
    auto parsed = parse_speedscope(input_);
    if (!parsed) return std::unexpected(parsed.error());
    const Json& root = parsed->root;
    if (!root.is_object()) return bad("it is no JSON object");
    assay_ = text_of(root, "exporter").starts_with("assay");
    auto shared = root.find("shared");
    if (shared == root.end() || !shared->is_object()) return bad("it has no shared frames");
    auto frames = shared->find("frames");
    if (frames == shared->end() || !frames->is_array()) return bad("it has no shared frames");
    for (const Json& frame : *frames) {
      if (!frame.is_object()) return bad("a frame is no object");
      frames_.push_back(add_frame(frame));
    }
    auto profiles = root.find("profiles");
    if (profiles == root.end() || !profiles->is_array()) return bad("it has no profiles");
    for (size_t i = 0; i < profiles->size(); ++i) {
      const Json& profile = (*profiles)[i];
      if (!profile.is_object() || i >= parsed->profiles.size())
        return bad("a profile is no object");
      if (auto done = read_profile(profile, parsed->profiles[i]); !done) return done;
    }
    builder_.set_event(other_unit_.empty() ? "cpu" : other_unit_, period_ns_);
    if (!other_unit_.empty()) {
      builder_.set_unit(other_unit_);
      builder_.note(
          "unit",
          fmt::format("the imported file counts {}, not time: where this run says ns, read "
                      "{}",
                      other_unit_, other_unit_),
          other_unit_ == "samples" ? "assay import --freq HZ says how long a sample is" : "");
    }
    return {};
  }

 private:
  enum class State : uint8_t { running, blocked, runnable };
  struct Open {
    model::StackId stack;
    State state = State::running;
  };

  std::unexpected<Error> bad(std::string_view what) const {
    return fail("{}: not a speedscope file: {}", input_.name(), what);
  }

  model::FrameId add_frame(const Json& frame) {
    model::Location location;
    location.function = text_of(frame, "name");
    location.file = text_of(frame, "file");
    auto line = frame.find("line");
    if (line != frame.end() && line->is_number_unsigned()) {
      location.function_line =
          static_cast<uint32_t>(std::min<uint64_t>(line->get<uint64_t>(), UINT32_MAX));
    }
    if (auto marker = marker_frame(builder_, location.function)) return *marker;
    if (auto leaf = parse_wait_leaf(location.function)) {
      bool queued = *leaf == kRunQueueLeaf;
      leaves_[frames_.size()] = queued ? State::runnable : State::blocked;
      return {};
    }
    bool kernel = location.file.starts_with("[kernel");
    model::ModuleId module = module_by_name(builder_, kernel ? "[kernel]" : "", "", 0);
    if (kernel) location.file.clear();
    return builder_.named_frame(module, std::span(&location, 1));
  }

  Result<void> read_profile(const Json& profile, const SpeedscopeLists& lists) {
    std::string name = text_of(profile, "name"), type = text_of(profile, "type");
    unit_ = unit_of(text_of(profile, "unit"));
    size_t dot = name.find(" · ");
    std::optional<Metric> metric;
    if (assay_ && dot != name.npos) metric = parse_metric(name.substr(0, dot));
    state_ = state_of(metric);
    counts_ = unit_.other == "samples";
    if (counts_ && metric != Metric::waits && options_.period_ns > 0) {
      period_ns_ = options_.period_ns;
      unit_ = {static_cast<double>(period_ns_), ""};
    }
    if (!unit_.other.empty()) other_unit_ = metric == Metric::waits ? "waits" : unit_.other;
    Who who;
    // What Assay wrote of one thread is one thread again.
    who.thread = metric ? name.substr(dot + std::string_view(" · ").size()) : name;
    thread_ = builder_.thread(who);
    if (type == "sampled") return read_sampled(profile, lists);
    if (type == "evented") return read_evented(profile, lists);
    return bad("a profile is neither sampled nor evented");
  }

  // What a thread did in a profile's time: of Assay's by its metric, of others' as the user says.
  State state_of(std::optional<Metric> metric) const {
    if (!metric) return options_.meaning == Meaning::off ? State::blocked : State::running;
    if (metric == Metric::runqueue) return State::runnable;
    bool waits = metric == Metric::off || metric == Metric::lock || metric == Metric::waits;
    return waits ? State::blocked : State::running;
  }

  static bool has_list(const Json& profile, const char* key) {
    auto it = profile.find(key);
    return it != profile.end() && it->is_array();
  }

  Result<void> read_sampled(const Json& profile, const SpeedscopeLists& lists) {
    if (!has_list(profile, "samples") || !has_list(profile, "weights") ||
        lists.sample_ends.size() != lists.weights.size()) {
      return bad("samples and weights of a profile do not match");
    }
    if (lists.bad_sample) return bad("a malformed sample");
    size_t at = 0;
    for (size_t i = 0; i < lists.weights.size(); ++i) {
      Open open{{}, state_};
      for (; at < lists.sample_ends[i]; ++at) {
        uint32_t frame = lists.sample_frames[at];
        if (frame >= frames_.size()) return bad("a sample with an unknown frame");
        open = below(open, frame);
      }
      add(open, lists.weights[i]);
      if (auto done = builder_.flush_if_full(); !done) return done;
    }
    return {};
  }

  Result<void> read_evented(const Json& profile, const SpeedscopeLists& lists) {
    if (!has_list(profile, "events")) return bad("a profile without events");
    if (lists.bad_event) return bad("a malformed event");
    std::vector<std::pair<uint32_t, Open>> open;
    double last = 0;
    bool first = true;
    for (const SpeedscopeLists::Event& event : lists.events) {
      if (event.frame >= frames_.size()) return bad("a malformed event");
      if (!first && event.at < last) return bad("events that go back in time");
      Open top = open.empty() ? Open{{}, state_} : open.back().second;
      if (!open.empty()) add(top, event.at - last);
      last = event.at;
      first = false;
      if (event.opens) {
        if (open.size() >= kDeepestStack) return bad("events that are nested too deep");
        open.emplace_back(event.frame, below(top, event.frame));
      } else {
        if (open.empty() || open.back().first != event.frame) {
          return bad("events that do not match");
        }
        open.pop_back();
      }
      if (auto done = builder_.flush_if_full(); !done) return done;
    }
    return {};
  }

  Open below(const Open& above, uint64_t frame) {
    if (auto leaf = leaves_.find(frame); leaf != leaves_.end()) return {above.stack, leaf->second};
    return {builder_.push(above.stack, frames_[frame]), above.state};
  }

  void add(const Open& open, double weight) {
    double ns = weight * unit_.ns;
    if (!(ns > 0) || ns > 4e18) return;
    int64_t whole = std::max<int64_t>(1, std::llround(ns));
    auto count = counts_ ? static_cast<uint64_t>(std::max<int64_t>(1, std::llround(weight))) : 1;
    switch (open.state) {
      case State::running:
        return builder_.untimed_samples(thread_, open.stack, count, whole);
      case State::blocked:
        return builder_.untimed_waits(thread_, open.stack, count, whole, 0);
      case State::runnable:
        return builder_.untimed_waits(thread_, open.stack, count, 0, whole);
    }
  }

  const Input& input_;
  const ReadOptions& options_;
  RunBuilder& builder_;
  bool assay_ = false;
  std::vector<model::FrameId> frames_;
  model::ThreadId thread_;
  Unit unit_;
  State state_ = State::running;                // of the profile, but for stacks with a leaf
  std::unordered_map<uint64_t, State> leaves_;  // by frame
  std::string other_unit_;
  bool counts_ = false;    // the profile at hand: weights are numbers of samples or waits
  int64_t period_ns_ = 0;  // of what is counted, as the user says
};

}  // namespace

bool looks_like_speedscope(std::string_view bytes) {
  std::string_view head = bytes.substr(0, 1 << 16);
  return trimmed(head).starts_with('{') &&
         (head.find("speedscope") != head.npos || head.find("\"profiles\"") != head.npos);
}

Result<void> read_speedscope(const Input& input, const ReadOptions& options, RunBuilder& builder) {
  return SpeedscopeReader(input, options, builder).read();
}

}  // namespace assay::formats
