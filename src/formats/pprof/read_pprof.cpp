#include "formats/pprof/read_pprof.h"

#include <algorithm>
#include <utility>

#include "formats/pprof/heap_values.h"
#include "formats/pprof/profile_message.h"
#include "formats/pprof/wire.h"
#include "formats/export/wait_leaf.h"

namespace assay::formats {
namespace {

int64_t unit_ns(std::string_view unit) {
  if (unit == "nanoseconds" || unit == "nanosecond" || unit == "ns") return 1;
  if (unit == "microseconds" || unit == "us") return 1'000;
  if (unit == "milliseconds" || unit == "ms") return 1'000'000;
  if (unit == "seconds" || unit == "s") return 1'000'000'000;
  return 0;
}

// Which of a profile's values mean what; −1: none of them.
struct Roles {
  int samples = -1, weight = -1;
  int waits = -1, off = -1, runqueue = -1;
  int64_t weight_unit = 1, off_unit = 1, runqueue_unit = 1;
  std::string unit;     // of the weights, when they are no time
  bool unsaid = false;  // whether the weights are of running or waiting
  bool counts_samples() const { return samples >= 0 && samples == weight; }
};

int index_of(const ProfileMessage& profile, std::string_view type) {
  for (size_t i = 0; i < profile.types.size(); ++i) {
    if (profile.types[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

const ProfileMessage::ValueType& type_at(const ProfileMessage& profile, int index) {
  return profile.types[static_cast<size_t>(index)];
}

// What a profile without time shows by default: the type it names, or the last.
int shown_first(const ProfileMessage& profile) {
  int named = index_of(profile, profile.default_type);
  return named >= 0 ? named : static_cast<int>(profile.types.size()) - 1;
}

Roles roles_of(const ProfileMessage& profile, bool has_heap) {
  Roles roles;
  roles.samples = index_of(profile, "samples");
  roles.weight = index_of(profile, "cpu");
  for (std::string_view name : {"off", "delay"}) {
    if (roles.off < 0) roles.off = index_of(profile, name);
  }
  for (std::string_view name : {"waits", "contentions"}) {
    if (roles.waits < 0) roles.waits = index_of(profile, name);
  }
  roles.runqueue = index_of(profile, "runqueue");
  if (roles.off >= 0) roles.off_unit = unit_ns(type_at(profile, roles.off).unit);
  if (roles.off_unit == 0) roles.off = -1;
  if (roles.runqueue >= 0) roles.runqueue_unit = unit_ns(type_at(profile, roles.runqueue).unit);
  if (roles.runqueue_unit == 0) roles.runqueue = -1;
  if (roles.weight < 0 && roles.off < 0 && !has_heap) {
    roles.weight = shown_first(profile);
    roles.unsaid = true;
  }
  if (roles.weight >= 0) {
    roles.weight_unit = unit_ns(type_at(profile, roles.weight).unit);
    if (roles.weight_unit == 0) {
      roles.weight_unit = 1;
      const auto& type = type_at(profile, roles.weight);
      roles.unit = type.unit == "count" ? std::string(type.type) : std::string(type.unit);
    }
  }
  return roles;
}

// What the user said of a profile that does not say it.
void apply(const ReadOptions& options, Roles& roles) {
  if (!roles.unsaid) return;
  if (roles.counts_samples() && options.period_ns > 0) {
    roles.weight_unit = options.period_ns;
    roles.unit.clear();
  }
  if (options.meaning != Meaning::off) return;
  roles.waits = std::exchange(roles.samples, -1);
  roles.off = std::exchange(roles.weight, -1);
  roles.off_unit = roles.weight_unit;
}

class PprofReader {
 public:
  PprofReader(const Input& input, const ProfileMessage& profile, RunBuilder& builder,
              const ReadOptions& options)
      : input_(input),
        profile_(profile),
        options_(options),
        heap_(profile, builder),
        roles_(roles_of(profile, heap_.present())),
        builder_(builder) {
    apply(options, roles_);
  }

  Result<void> read() {
    if (options_.meaning != Meaning::unsaid && !roles_.unsaid) {
      return fail_with_remedy(
          fmt::format(
              "{}: --as is for folded, speedscope and pprof files that do not say what they "
              "hold; this one does",
              input_.name()),
          "leave --as out");
    }
    frames_.resize(profile_.locations.size());
    ProfileSample sample;
    for (const auto& [bytes, offset] : profile_.samples) {
      if (!decode_sample(profile_, bytes, sample)) {
        return input_.fail_at(offset, "malformed pprof sample");
      }
      if (sample.values.size() != profile_.types.size()) {
        return input_.fail_at(offset, "a sample of {} values where {} are declared",
                              sample.values.size(), profile_.types.size());
      }
      if (!add(sample)) return input_.fail_at(offset, "a sample with an unknown location");
      if (auto done = builder_.flush_if_full(); !done) return done;
    }
    if (heap_.present()) heap_.finish();
    builder_.set_duration(std::clamp<int64_t>(profile_.duration_ns, 0, INT64_MAX / 4));
    builder_.set_begin_utc(std::max<int64_t>(0, profile_.time_ns));
    if (roles_.weight < 0 && heap_.present()) return {};
    int64_t period = profile_.period * unit_ns(profile_.period_type.unit);
    if (roles_.counts_samples() && options_.period_ns > 0) period = options_.period_ns;
    builder_.set_event(roles_.unit.empty() ? "cpu" : roles_.unit, std::max<int64_t>(0, period));
    add_notes();
    return {};
  }

 private:
  void add_notes() {
    if (!roles_.unit.empty()) {
      builder_.set_unit(roles_.unit);
      builder_.note(
          "unit",
          fmt::format("the imported profile counts {}, not time: where this run says ns, "
                      "read {}",
                      roles_.unit, roles_.unit),
          roles_.counts_samples() ? "assay import --freq HZ says how long a sample is" : "");
    } else if (roles_.unsaid && roles_.weight >= 0 && !roles_.counts_samples() &&
               options_.meaning == Meaning::unsaid) {
      builder_.fact("meaning", "unsaid");
      builder_.note(
          "meaning",
          fmt::format("a pprof type '{}' does not say whether it is time on the CPU or time "
                      "blocked: it is taken as time on the CPU",
                      stored(type_at(profile_, roles_.weight).type)),
          "assay import --as off when it is waits, --as cpu when it is not");
    }
    if (negative_ > 0) {
      builder_.note("values",
                    fmt::format("{} values of the imported profile are less than nothing, "
                                "as in the difference of two: they are left out",
                                negative_));
    }
  }

  int64_t value(const ProfileSample& sample, int index, int64_t unit) {
    if (index < 0) return 0;
    int64_t raw = sample.values[static_cast<size_t>(index)];
    if (raw < 0) ++negative_;
    raw = std::max<int64_t>(0, raw);
    return raw > INT64_MAX / 4 / unit ? INT64_MAX / 4 : raw * unit;
  }

  bool add(const ProfileSample& sample) {
    model::StackId stack;
    size_t depth = std::min(sample.locations.size(), kDeepestStack);
    for (size_t i = depth; i-- > 0;) {
      auto it = profile_.location_of.find(sample.locations[i]);
      if (it == profile_.location_of.end()) return false;
      if (i == 0 && is_wait_leaf(profile_.locations[it->second])) break;
      stack = builder_.push(stack, frame(it->second));
    }
    model::ThreadId thread = builder_.thread(who(sample));
    if (heap_.present()) heap_.add(sample, thread, stack);
    int64_t weight = value(sample, roles_.weight, roles_.weight_unit);
    int64_t count = value(sample, roles_.samples, 1);
    if (weight > 0 || (count > 0 && roles_.weight < 0 && !heap_.present())) {
      if (roles_.samples < 0) count = 1;
      builder_.untimed_samples(thread, stack, static_cast<uint64_t>(count), weight);
    }
    builder_.untimed_waits(thread, stack, static_cast<uint64_t>(value(sample, roles_.waits, 1)),
                           value(sample, roles_.off, roles_.off_unit),
                           value(sample, roles_.runqueue, roles_.runqueue_unit));
    return true;
  }

  // The values say already what Assay's leaves of wall time say.
  bool is_wait_leaf(const ProfileMessage::Location& location) const {
    if (location.address != 0 || location.lines.size() != 1) return false;
    auto it = profile_.function_of.find(location.lines[0].function);
    return it != profile_.function_of.end() && roles_.off >= 0 &&
           parse_wait_leaf(profile_.functions[it->second].name).has_value();
  }

  static Who who(const ProfileSample& sample) {
    Who who;
    for (const ProfileMessage::Label& label : sample.labels) {
      if (label.key == "process") who.process = stored(label.text);
      if (label.key == "role") who.role = stored(label.text);
      if (label.key == "thread") who.thread = stored(label.text);
      if (label.key == "pool") who.pool = stored(label.text);
      if (label.key == "pid") who.pid = static_cast<pid_t>(label.number);
      if (label.key == "tid") who.tid = static_cast<pid_t>(label.number);
    }
    return who;
  }

  model::FrameId frame(size_t index) {
    if (frames_[index]) return *frames_[index];
    const ProfileMessage::Location& location = profile_.locations[index];
    ProfileMessage::Mapping mapping;
    if (auto it = profile_.mapping_of.find(location.mapping); it != profile_.mapping_of.end()) {
      mapping = profile_.mappings[it->second];
    }
    model::ModuleId module = module_by_name(
        builder_, mapping.file, std::string(stored(mapping.build_id)), location.address);
    std::vector<model::Location> names;
    for (const ProfileMessage::Line& line : location.lines) {
      auto it = profile_.function_of.find(line.function);
      if (it != profile_.function_of.end())
        names.push_back(name(profile_.functions[it->second], line));
    }
    for (size_t i = 0; i + 1 < names.size(); ++i) names[i].inlined = true;
    bool relative = builder_.modules()[module].kind == model::ModuleKind::elf ||
                    builder_.modules()[module].kind == model::ModuleKind::vdso;
    uint64_t address = location.address;
    if (relative && address >= mapping.start) address = address - mapping.start + mapping.offset;
    if (location.address == 0 && !names.empty()) {
      if (auto marker = marker_frame(builder_, names[0].function))
        return *(frames_[index] = marker);
      frames_[index] = builder_.named_frame(module, names);
      return *frames_[index];
    }
    bool is_new = false;
    frames_[index] = builder_.frame({module, address}, &is_new);
    if (is_new && !names.empty()) builder_.name(*frames_[index], names);
    return *frames_[index];
  }

  static model::Location name(const ProfileMessage::Function& function,
                              const ProfileMessage::Line& line) {
    model::Location location;
    location.function = stored(function.name.empty() ? function.system_name : function.name);
    if (function.system_name != function.name) location.system_name = stored(function.system_name);
    location.file = stored(function.file);
    location.line = static_cast<uint32_t>(std::min<uint64_t>(line.line, UINT32_MAX));
    location.function_line =
        static_cast<uint32_t>(std::min<uint64_t>(function.start_line, UINT32_MAX));
    return location;
  }

  const Input& input_;
  const ProfileMessage& profile_;
  const ReadOptions& options_;
  HeapValues heap_;
  Roles roles_;
  RunBuilder& builder_;
  uint64_t negative_ = 0;                              // values
  std::vector<std::optional<model::FrameId>> frames_;  // by location
};

}  // namespace

bool looks_like_pprof(std::string_view unpacked) {
  constexpr uint32_t kHighestField = 20;
  constexpr int kFieldsLookedAt = 1000;
  bool has_type = false;
  WireReader reader(unpacked);
  for (int i = 0; i < kFieldsLookedAt; ++i) {
    auto field = reader.next();
    if (!field) break;
    if (field->number > kHighestField) return false;
    has_type = has_type || ((field->number == 1 || field->number == 2) && field->is_bytes);
  }
  return has_type;
}

Result<void> read_pprof(const Input& input, RunBuilder& builder, const ReadOptions& options) {
  auto profile = decode_profile(input);
  if (!profile) return std::unexpected(profile.error());
  return PprofReader(input, *profile, builder, options).read();
}

}  // namespace assay::formats
