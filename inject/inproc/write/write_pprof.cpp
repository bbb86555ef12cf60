#include "inject/inproc/write/write_pprof.h"

#include <cstring>

#include <zlib.h>

#include "inject/inproc/lifecycle/label_table.h"

namespace assay::inproc {
namespace {

// Field numbers of profile.proto.
enum ProfileField {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kDropFrames,
  kTimeNanos = 9,
  kDurationNanos,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultType
};

class Message {
 public:
  explicit Message(ByteBuffer& out) : out_(out) {}
  void number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    varint(field << 3);
    varint(value);
  }
  void bytes(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    out_.append(value);
  }
  void varint(uint64_t value) {
    if (!out_.reserve(10)) return;
    char* at = out_.end();
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) at[count++] = static_cast<char>(value | 0x80);
    at[count++] = static_cast<char>(value);
    out_.grow(count);
  }

 private:
  ByteBuffer& out_;
};

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, Arena& arena, ByteBuffer& out)
      : profile_(profile), arena_(arena), out_(out), top_(out) {}

  bool write() {
    if (!code_.make(profile_, arena_) || !start_strings()) return false;
    for (size_t i = 0; i < profile_.type_count; ++i) value_type(kSampleType, profile_.types[i]);
    for (size_t i = 0; i < profile_.count; ++i) sample(profile_.samples[i]);
    mappings();
    locations();
    top_.number(kDropFrames, string(profile_.drop_frames));
    top_.number(kTimeNanos, static_cast<uint64_t>(profile_.time_ns));
    top_.number(kDurationNanos, static_cast<uint64_t>(profile_.duration_ns));
    if (profile_.period_type.type[0] != 0) value_type(kPeriodType, profile_.period_type);
    top_.number(kPeriod, static_cast<uint64_t>(profile_.period));
    for (const char* comment : profile_.comments)
      if (comment != nullptr) top_.number(kComment, string(comment));
    if (profile_.default_type != nullptr) top_.number(kDefaultType, string(profile_.default_type));
    for (size_t i = 0; i < string_count_; ++i) top_.bytes(kStringTable, strings_[i]);
    return !out_.failed() && !part_.failed() && !inner_.failed() && !arena_.failed();
  }

 private:
  bool start_strings() {
    // Two names per address, two per module, and what labels and types need.
    max_strings_ =
        2 * code_.count + 2 * code_.modules.size() + 2 * kMaxLabelDepth * profile_.count + 64;
    for (slots_ = 64; slots_ < 2 * max_strings_;) slots_ *= 2;
    strings_ = arena_.array<std::string_view>(max_strings_);
    index_ = arena_.array<uint32_t>(slots_);
    if (strings_ == nullptr || index_ == nullptr) return false;
    strings_[string_count_++] = "";
    return true;
  }

  uint64_t string(std::string_view text) {
    if (text.empty()) return 0;
    uint64_t hash = 0xcbf29ce484222325;
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    size_t slot = (hash ^ hash >> 32) & (slots_ - 1);
    for (; index_[slot] != 0; slot = (slot + 1) & (slots_ - 1))
      if (strings_[index_[slot]] == text) return index_[slot];
    if (string_count_ == max_strings_) return 0;
    index_[slot] = static_cast<uint32_t>(string_count_);
    strings_[string_count_] = text;
    return string_count_++;
  }

  void put(uint32_t field) {
    top_.bytes(field, part_.view());
    part_.clear();
  }

  void value_type(uint32_t field, const ValueType& type) {
    Message message(part_);
    message.number(1, string(type.type));
    message.number(2, string(type.unit));
    put(field);
  }

  void sample(const ProfileSample& sample) {
    Message message(part_), packed(inner_);
    for (uint32_t i = 0; i < sample.frames; ++i) {
      const CodeAddress* address = code_.find(profile_.code_address(sample, i));
      packed.varint(static_cast<uint64_t>(address - code_.addresses) + 1);
    }
    message.bytes(1, inner_.view());
    inner_.clear();
    for (size_t i = 0; i < profile_.type_count; ++i)
      packed.varint(static_cast<uint64_t>(sample.values[i]));
    message.bytes(2, inner_.view());
    inner_.clear();
    LabelPair pairs[kMaxLabelDepth];
    size_t count = pairs_of(sample.label, pairs);
    for (size_t i = 0; i < count; ++i) {
      packed.number(1, string(pairs[i].key));
      packed.number(2, string(pairs[i].value));
      message.bytes(3, inner_.view());
      inner_.clear();
    }
    put(kSample);
  }

  // The program first, as readers expect; the other modules that samples are in after it.
  void mappings() {
    const char* program = program_path(arena_);
    Module* first = nullptr;
    for (Module& module : code_.modules)
      if (first == nullptr && std::strcmp(module.path, program) == 0) first = &module;
    if (first != nullptr) mapping(*first);
    for (Module& module : code_.modules)
      if (&module != first) mapping(module);
  }

  void mapping(const Module& module) {
    Message message(part_);
    message.number(1, static_cast<uint64_t>(&module - code_.modules.begin()) + 1);
    message.number(2, module.start);
    message.number(3, module.end);
    message.number(4, module.offset);
    message.number(5, string(module.path));
    message.number(6, string(module.build_id));
    message.number(7, module.has_functions);
    put(kMapping);
  }

  // Addresses are in order, so those of one function are neighbours: one function for each run of
  // them.
  void locations() {
    uint64_t functions = 0;
    const CodeAddress* previous = nullptr;
    for (size_t i = 0; i < code_.count; ++i) {
      const CodeAddress& address = code_.addresses[i];
      bool named = address.name != nullptr;
      bool same =
          named && previous != nullptr && previous->function_start == address.function_start;
      if (named && !same) {
        Message function(part_);
        function.number(1, ++functions);
        function.number(2, string(address.name));
        function.number(3, string(address.system_name));
        put(kFunction);
      }
      if (named) previous = &address;
      Message location(part_);
      location.number(1, i + 1);
      if (address.module != nullptr)
        location.number(2, static_cast<uint64_t>(address.module - code_.modules.begin()) + 1);
      location.number(3, address.address);
      if (named) {
        Message line(inner_);
        line.number(1, functions);
        location.bytes(4, inner_.view());
        inner_.clear();
      }
      put(kLocation);
    }
  }

  const Profile& profile_;
  Arena& arena_;
  ByteBuffer& out_;
  Message top_;
  ByteBuffer part_, inner_;
  NamedCode code_;
  std::string_view* strings_ = nullptr;
  uint32_t* index_ = nullptr;
  size_t string_count_ = 0, max_strings_ = 0, slots_ = 0;
};

void* zlib_allocate(void* arena, unsigned count, unsigned bytes) {
  return static_cast<Arena*>(arena)->allocate(size_t{count} * bytes);
}
void zlib_free(void*, void*) {}

}  // namespace

bool gzip(const ByteBuffer& from, ByteBuffer& out) {
  Arena arena;
  z_stream stream{};
  stream.zalloc = zlib_allocate;
  stream.zfree = zlib_free;
  stream.opaque = &arena;
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return false;
  size_t bound = deflateBound(&stream, from.size());
  if (!out.reserve(bound)) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.end());
  stream.avail_out = static_cast<uInt>(bound);
  bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  if (done) out.grow(stream.total_out);
  deflateEnd(&stream);
  return done;
}

bool write_pprof(const Profile& profile, Arena& arena, ByteBuffer& out) {
  ByteBuffer plain;
  return PprofWriter(profile, arena, plain).write() && gzip(plain, out);
}

}  // namespace assay::inproc
