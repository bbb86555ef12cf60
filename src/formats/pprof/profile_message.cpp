#include "formats/pprof/profile_message.h"

#include "formats/pprof/wire.h"

namespace assay::formats {
namespace {

using Field = WireReader::Field;

// Calls `visit` with each field; false when the bytes are malformed.
template <class Visit>
bool each_field(std::string_view bytes, const Visit& visit) {
  WireReader reader(bytes);
  while (auto field = reader.next()) visit(*field);
  return !reader.failed();
}

// A repeated number, packed or not.
template <class Add>
bool numbers(const Field& field, const Add& add) {
  if (!field.is_bytes) {
    add(field.value);
    return true;
  }
  WireReader packed(field.bytes);
  while (auto value = packed.next_packed()) add(*value);
  return !packed.failed();
}

class Decoder {
 public:
  explicit Decoder(const Input& input) : input_(input) {}

  Result<ProfileMessage> decode() {
    // Strings first: the other messages refer to them and may stand before them.
    size_t bad = SIZE_MAX;
    WireReader strings(input_.bytes());
    while (auto field = strings.next()) {
      if (field->number == 6 && field->is_bytes) out_.strings.push_back(field->bytes);
    }
    if (strings.failed()) return input_.fail_at(strings.offset(), "malformed pprof data");
    WireReader reader(input_.bytes());
    while (auto field = reader.next()) {
      if (!take(*field)) bad = std::min(bad, field->offset);
      if (nameless_) return input_.fail_at(field->offset, "a name beyond the table of strings");
    }
    if (bad != SIZE_MAX) return input_.fail_at(bad, "malformed pprof data");
    if (out_.types.empty()) return input_.fail_at(0, "pprof data without a sample type");
    return std::move(out_);
  }

 private:
  bool take(const Field& field) {
    switch (field.number) {
      case 1:
        return field.is_bytes && value_type(field.bytes, out_.types.emplace_back());
      case 2:
        out_.samples.emplace_back(field.bytes, field.offset);
        return field.is_bytes;
      case 3:
        return field.is_bytes && mapping(field.bytes);
      case 4:
        return field.is_bytes && location(field.bytes);
      case 5:
        return field.is_bytes && function(field.bytes);
      case 9:
        out_.time_ns = static_cast<int64_t>(field.value);
        return true;
      case 10:
        out_.duration_ns = static_cast<int64_t>(field.value);
        return true;
      case 11:
        return field.is_bytes && value_type(field.bytes, out_.period_type);
      case 12:
        out_.period = static_cast<int64_t>(field.value);
        return true;
      case 14:
        out_.default_type = text(field.value);
        return true;
      default:
        return true;
    }
  }

  // A string by its index. Where a file was cut, its strings are missing.
  std::string_view text(uint64_t index) {
    nameless_ = nameless_ || (index > 0 && index >= out_.strings.size());
    return out_.string(index);
  }

  bool value_type(std::string_view bytes, ProfileMessage::ValueType& type) {
    return each_field(bytes, [&](const Field& f) {
      if (f.number == 1) type.type = text(f.value);
      if (f.number == 2) type.unit = text(f.value);
    });
  }

  bool mapping(std::string_view bytes) {
    ProfileMessage::Mapping row;
    bool well = each_field(bytes, [&](const Field& f) {
      if (f.number == 1) row.id = f.value;
      if (f.number == 2) row.start = f.value;
      if (f.number == 3) row.limit = f.value;
      if (f.number == 4) row.offset = f.value;
      if (f.number == 5) row.file = text(f.value);
      if (f.number == 6) row.build_id = text(f.value);
    });
    out_.mapping_of.try_emplace(row.id, out_.mappings.size());
    out_.mappings.push_back(row);
    return well;
  }

  bool location(std::string_view bytes) {
    ProfileMessage::Location row;
    bool lines_well = true;
    bool well = each_field(bytes, [&](const Field& f) {
      if (f.number == 1) row.id = f.value;
      if (f.number == 2) row.mapping = f.value;
      if (f.number == 3) row.address = f.value;
      if (f.number != 4 || !f.is_bytes) return;
      ProfileMessage::Line& line = row.lines.emplace_back();
      lines_well = lines_well && each_field(f.bytes, [&](const Field& l) {
                     if (l.number == 1) line.function = l.value;
                     if (l.number == 2) line.line = l.value;
                   });
    });
    out_.location_of.try_emplace(row.id, out_.locations.size());
    out_.locations.push_back(std::move(row));
    return well && lines_well;
  }

  bool function(std::string_view bytes) {
    ProfileMessage::Function row;
    bool well = each_field(bytes, [&](const Field& f) {
      if (f.number == 1) row.id = f.value;
      if (f.number == 2) row.name = text(f.value);
      if (f.number == 3) row.system_name = text(f.value);
      if (f.number == 4) row.file = text(f.value);
      if (f.number == 5) row.start_line = f.value;
    });
    out_.function_of.try_emplace(row.id, out_.functions.size());
    out_.functions.push_back(row);
    return well;
  }

  const Input& input_;
  ProfileMessage out_;
  bool nameless_ = false;
};

}  // namespace

Result<ProfileMessage> decode_profile(const Input& input) {
  return Decoder(input).decode();
}

bool decode_sample(const ProfileMessage& profile, std::string_view bytes, ProfileSample& sample) {
  sample.locations.clear();
  sample.values.clear();
  sample.labels.clear();
  bool inner = true;
  bool outer = each_field(bytes, [&](const Field& f) {
    if (f.number == 1) {
      inner = inner && numbers(f, [&](uint64_t id) { sample.locations.push_back(id); });
    } else if (f.number == 2) {
      inner = inner && numbers(f, [&](uint64_t value) {
                sample.values.push_back(static_cast<int64_t>(value));
              });
    } else if (f.number == 3 && f.is_bytes) {
      ProfileMessage::Label& label = sample.labels.emplace_back();
      inner &= each_field(f.bytes, [&](const Field& l) {
        bool named = l.number == 1 || l.number == 2;
        inner = inner && !(named && l.value > 0 && l.value >= profile.strings.size());
        if (l.number == 1) label.key = profile.string(l.value);
        if (l.number == 2) label.text = profile.string(l.value);
        if (l.number == 3) label.number = static_cast<int64_t>(l.value);
      });
    }
  });
  return inner && outer;
}

}  // namespace assay::formats
