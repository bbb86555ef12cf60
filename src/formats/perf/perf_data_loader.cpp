#include "formats/perf/perf_data_loader.h"

#include <algorithm>
#include <bit>

#include <zstd.h>

#include "base/byte_reader.h"
#include "formats/perf/sample_layout.h"

namespace assay::formats {
namespace {

// Records that perf itself writes, beside the kernel's.
enum SyntheticType : uint32_t {
  kHeaderAttr = 64,
  kHeaderTracingData = 66,
  kHeaderBuildId = 67,
  kAuxTrace = 71,
  kHeaderFeature = 80,
  kCompressed = 81,
  kCompressed2 = 83,
};
enum Feature : int {
  kBuildIds = 2,
  kHostName = 3,
  kRelease = 4,
  kArch = 6,
  kCommand = 11,
  kEvents = 12
};

constexpr std::string_view kMagic = "PERFILE2";
constexpr size_t kRecordHead = sizeof(perf_event_header);
constexpr size_t kMostUnpacked = size_t{8} << 30;
constexpr size_t kMostEvents = 100'000;
constexpr uint16_t kBuildIdHasSize = 1u << 15;

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

perf_event_header head_of(std::string_view record) {
  perf_event_header head{};
  std::memcpy(&head, record.data(), sizeof head);
  return head;
}

std::string_view length_text(ByteReader& in) {
  std::string_view text = in.bytes(in.u32());
  return text.substr(0, text.find('\0'));
}

}  // namespace

bool looks_like_perf_data(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

PerfDataLoader::PerfDataLoader(const Input& input)
    : input_(input), bytes_(input.bytes()), out_(input) {}

PerfDataLoader::~PerfDataLoader() {
  ZSTD_freeDCtx(unpacker_);
}

Result<PerfData> PerfDataLoader::load() {
  if (!looks_like_perf_data(bytes_)) return input_.fail_at(0, "no perf.data file");
  ByteReader in(bytes_.substr(kMagic.size()));
  uint64_t header_size = in.u64();
  if (!in.ok()) return input_.fail_at(bytes_.size(), "the file ends in its header");
  constexpr uint64_t kPipeHeader = 16;
  auto done = header_size == kPipeHeader ? load_records(kPipeHeader, bytes_.size()) : load_file();
  if (!done) return std::unexpected(done.error());
  name_events();
  sort_by_time();
  return std::move(out_);
}

// perf writes what it found in each CPU's buffer, one after another, again and again: long runs in
// the order of time, and what it wrote later is mostly later. Merging such runs pair by pair moves
// little.
void PerfDataLoader::sort_by_time() {
  auto& index = out_.index_;
  auto earlier = [](const auto& a, const auto& b) { return a.time < b.time; };
  std::vector<size_t> runs{0};  // where each begins, and the end
  for (size_t i = 1; i < index.size(); ++i) {
    if (earlier(index[i], index[i - 1])) runs.push_back(i);
  }
  runs.push_back(index.size());
  if (runs.size() > index.size() / 8) {
    std::stable_sort(index.begin(), index.end(), earlier);
    return;
  }
  auto at = [&](size_t run) { return index.begin() + static_cast<ptrdiff_t>(runs[run]); };
  while (runs.size() > 2) {
    size_t kept = 0;
    for (size_t run = 0; run + 1 < runs.size(); run += 2) {
      bool pair = run + 2 < runs.size();
      if (pair && earlier(*at(run + 1), *(at(run + 1) - 1))) {
        std::inplace_merge(at(run), at(run + 1), at(run + 2), earlier);
      }
      runs[kept++] = runs[run];
    }
    runs[kept++] = runs.back();
    runs.resize(kept);
  }
}

Result<void> PerfDataLoader::load_file() {
  ByteReader in(bytes_.substr(kMagic.size() + 8));
  uint64_t attr_size = in.u64();
  uint64_t attrs_at = in.u64(), attrs_size = in.u64();
  uint64_t data_at = in.u64(), data_size = in.u64();
  in.skip(16);
  uint64_t bits[4] = {};
  for (uint64_t& word : bits) word = in.u64();
  if (!in.ok()) return input_.fail_at(bytes_.size(), "the file ends in its header");
  if (auto done = load_attributes(attrs_at, attrs_size, attr_size); !done) return done;
  if (data_at > bytes_.size()) return input_.fail_at(data_at, "the data lies beyond the file");
  uint64_t end = data_at + std::min<uint64_t>(data_size, bytes_.size());
  if (data_size == 0) {
    out_.was_cut_ = true;
    return load_records(data_at, bytes_.size());
  }
  if (end > bytes_.size()) return input_.fail_at(bytes_.size(), "the file ends in its data");
  if (auto done = load_features(end, bits); !done) return done;
  return load_records(data_at, end);
}

Result<void> PerfDataLoader::load_attributes(uint64_t offset, uint64_t size, uint64_t each) {
  constexpr uint64_t kSmallest = PERF_ATTR_SIZE_VER0 + 16, kLargest = 4096;
  if (each < kSmallest || each > kLargest || offset > bytes_.size() ||
      size > bytes_.size() - offset || size / each > kMostEvents) {
    return input_.fail_at(24, "malformed attributes");
  }
  for (uint64_t at = offset; at + each <= offset + size; at += each) {
    std::string_view attr = bytes_.substr(at, each - 16);
    ByteReader section(bytes_.substr(at + each - 16, 16));
    uint64_t ids_at = section.u64(), ids_size = section.u64();
    if (ids_at > bytes_.size() || ids_size > bytes_.size() - ids_at) {
      return input_.fail_at(at, "an event's ids lie beyond the file");
    }
    add_event(attr, bytes_.substr(ids_at, ids_size));
  }
  if (out_.events_.empty()) return input_.fail_at(offset, "no event");
  return {};
}

void PerfDataLoader::add_event(std::string_view attr, std::string_view ids) {
  PerfEvent event;
  std::memcpy(&event.attr, attr.data(), std::min(attr.size(), sizeof event.attr));
  auto number = static_cast<uint32_t>(out_.events_.size());
  out_.events_.push_back(std::move(event));
  ByteReader in(ids);
  while (in.left() >= 8) out_.event_of_id_[in.u64()] = number;
}

Result<void> PerfDataLoader::load_features(uint64_t data_end, const uint64_t (&bits)[4]) {
  ByteReader sections(bytes_.substr(data_end));
  for (int id = 0; id < 256; ++id) {
    if ((bits[id / 64] >> (id % 64) & 1) == 0) continue;
    uint64_t at = sections.u64(), size = sections.u64();
    if (!sections.ok() || at > bytes_.size() || size > bytes_.size() - at) {
      return input_.fail_at(data_end, "feature {} lies beyond the file", id);
    }
    take_feature(id, bytes_.substr(at, size));
  }
  return {};
}

void PerfDataLoader::take_feature(int id, std::string_view bytes) {
  ByteReader in(bytes);
  if (id == kBuildIds) take_build_ids(bytes);
  if (id == kEvents) take_event_names(bytes);
  if (id == kHostName) out_.facts_["host"] = length_text(in);
  if (id == kRelease) out_.facts_["kernel"] = length_text(in);
  if (id == kArch) out_.facts_["arch"] = length_text(in);
  if (id == kCommand) {
    std::string line;
    uint32_t count = in.u32();
    for (uint32_t i = 0; i < count && in.ok() && line.size() < 10'000; ++i) {
      line += (i > 0 ? " " : "") + std::string(length_text(in));
    }
    out_.facts_["command"] = line;
  }
}

void PerfDataLoader::take_event_names(std::string_view bytes) {
  ByteReader in(bytes);
  uint32_t count = in.u32(), attr_size = in.u32();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    in.skip(attr_size);
    uint32_t ids = in.u32();
    std::string_view name = length_text(in);
    in.skip(uint64_t{ids} * 8);
    if (in.ok() && i < out_.events_.size()) out_.events_[i].name = name;
  }
}

void PerfDataLoader::take_build_ids(std::string_view bytes) {
  while (bytes.size() >= kRecordHead + 28) {
    perf_event_header head = head_of(bytes);
    if (head.size < kRecordHead + 28 || head.size > bytes.size()) return;
    ByteReader in(bytes.substr(kRecordHead, head.size - kRecordHead));
    in.u32();  // pid
    std::string_view id = in.bytes(24);
    size_t size = head.misc & kBuildIdHasSize ? static_cast<uint8_t>(id[20]) : 20;
    out_.build_ids_[std::string(in.last_text())] = hex(id.substr(0, std::min<size_t>(size, 20)));
    bytes.remove_prefix(head.size);
  }
}

Result<void> PerfDataLoader::load_records(size_t at, size_t end) {
  while (at < end) {
    if (end - at < kRecordHead) {
      if (out_.was_cut_) return {};
      return input_.fail_at(at, "the data ends in a record");
    }
    perf_event_header head = head_of(bytes_.substr(at));
    if (head.size < kRecordHead || head.size > end - at) {
      if (out_.was_cut_) return {};
      return input_.fail_at(at, "a record of {} bytes where {} are left", head.size, end - at);
    }
    std::string_view record = bytes_.substr(at, head.size);
    if (head.type < kHeaderAttr) {
      if (auto done = index_record(record, at); !done) return done;
      at += head.size;
      continue;
    }
    auto next = take_synthetic(head.type, record, at, end);
    if (!next) return std::unexpected(next.error());
    at = *next;
  }
  return {};
}

Result<size_t> PerfDataLoader::take_synthetic(uint32_t type, std::string_view record, size_t at,
                                              size_t end) {
  ByteReader in(record.substr(kRecordHead));
  uint64_t behind = 0;  // bytes that follow the record
  Result<void> done;
  switch (type) {
    case kHeaderAttr:
      done = take_attribute(record.substr(kRecordHead), at);
      break;
    case kHeaderBuildId:
      take_build_ids(record);
      break;
    case kHeaderTracingData:
      behind = (uint64_t{in.u32()} + 7) & ~uint64_t{7};
      break;
    case kAuxTrace:
      behind = in.u64();
      break;
    case kHeaderFeature: {
      auto id = static_cast<int>(std::min<uint64_t>(in.u64(), 255));
      take_feature(id, in.bytes(in.left()));
      break;
    }
    case kCompressed:
      done = unpack(record.substr(kRecordHead), at);
      break;
    case kCompressed2: {
      uint64_t size = in.u64();
      done = unpack(in.bytes(std::min<uint64_t>(size, in.left())), at);
      break;
    }
    default:
      break;
  }
  if (!done) return std::unexpected(done.error());
  if (!in.ok() || behind > end - at - record.size()) {
    return input_.fail_at(at, "a record that is too short");
  }
  return at + record.size() + behind;
}

Result<void> PerfDataLoader::take_attribute(std::string_view bytes, size_t offset) {
  constexpr size_t kSizeAt = offsetof(perf_event_attr, size);
  uint32_t size = 0;
  if (bytes.size() >= kSizeAt + 4) std::memcpy(&size, bytes.data() + kSizeAt, 4);
  if (size < PERF_ATTR_SIZE_VER0 || size > bytes.size() || out_.events_.size() >= kMostEvents) {
    return input_.fail_at(offset, "a malformed attribute");
  }
  add_event(bytes.substr(0, size), bytes.substr(size));
  return {};
}

Result<void> PerfDataLoader::unpack(std::string_view packed, size_t offset) {
  if (unpacker_ == nullptr) unpacker_ = ZSTD_createDCtx();
  auto plain = std::make_unique<std::string>(std::move(leftover_));
  leftover_.clear();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  char buffer[1 << 16];
  bool full = true;
  while (in.pos < in.size || full) {
    ZSTD_outBuffer out{buffer, sizeof buffer, 0};
    size_t status = ZSTD_decompressStream(unpacker_, &out, &in);
    if (ZSTD_isError(status) != 0) return input_.fail_at(offset, "damaged compressed records");
    plain->append(buffer, out.pos);
    unpacked_bytes_ += out.pos;
    if (unpacked_bytes_ > kMostUnpacked) return input_.fail_at(offset, "too much compressed data");
    full = out.pos == out.size;
  }
  std::string_view rest = *plain;
  while (rest.size() >= kRecordHead) {
    perf_event_header head = head_of(rest);
    if (head.size < kRecordHead) return input_.fail_at(offset, "a malformed compressed record");
    if (head.size > rest.size()) break;
    if (head.type < kHeaderAttr) {
      if (auto done = index_record(rest.substr(0, head.size), offset); !done) return done;
    }
    rest.remove_prefix(head.size);
  }
  leftover_ = rest;
  out_.unpacked_.emplace_back(std::move(plain), offset);
  return {};
}

const perf_event_attr* PerfDataLoader::attr_of(uint32_t type, std::string_view body,
                                               uint32_t& event) const {
  if (out_.events_.empty()) return nullptr;
  const perf_event_attr& first = out_.events_[0].attr;
  event = 0;
  if (out_.events_.size() == 1) return &first;
  // perf gives all events of a file the same place for the id.
  auto id = type == PERF_RECORD_SAMPLE ? id_of_sample(first, body) : id_of_trailer(first, body);
  if (id) {
    auto it = out_.event_of_id_.find(*id);
    if (it != out_.event_of_id_.end()) event = it->second;
  }
  return &out_.events_[event].attr;
}

Result<void> PerfDataLoader::index_record(std::string_view record, size_t offset) {
  perf_event_header head = head_of(record);
  std::string_view body = record.substr(kRecordHead);
  uint32_t event = 0;
  const perf_event_attr* attr = attr_of(head.type, body, event);
  if (attr == nullptr) return input_.fail_at(offset, "a record before any event");
  PerfHead parsed;
  bool well = true;
  if (head.type == PERF_RECORD_SAMPLE) {
    uint64_t period = 0;
    well = parse_sample_head(*attr, body, parsed, period);
    ++out_.events_[event].samples;
    out_.events_[event].period_sum += static_cast<double>(period);
  } else {
    well = parse_trailer(*attr, body, parsed);
  }
  if (!well) return input_.fail_at(offset, "a record that is too short");
  if (parsed.time < 0 || parsed.time > INT64_MAX / 4)
    return input_.fail_at(offset, "a record with an impossible time");
  bool switched = head.type == PERF_RECORD_SWITCH || head.type == PERF_RECORD_SWITCH_CPU_WIDE;
  out_.has_switches_ = out_.has_switches_ || switched;
  if (parsed.time > 0 && (switched || head.type == PERF_RECORD_SAMPLE)) {
    out_.first_time_ = std::min(out_.first_time_, parsed.time);
    out_.last_time_ = std::max(out_.last_time_, parsed.time);
  }
  out_.index_.push_back({parsed.time, record.data(), static_cast<uint32_t>(record.size()), event});
  return {};
}

void PerfDataLoader::name_events() {
  for (PerfEvent& event : out_.events_) {
    if (!event.name.empty()) continue;
    uint64_t config = event.attr.config;
    if (event.attr.type == PERF_TYPE_SOFTWARE) {
      event.name = config == PERF_COUNT_SW_CPU_CLOCK    ? "cpu-clock"
                   : config == PERF_COUNT_SW_TASK_CLOCK ? "task-clock"
                                                        : fmt::format("software-{}", config);
    } else if (event.attr.type == PERF_TYPE_HARDWARE && config == PERF_COUNT_HW_CPU_CYCLES) {
      event.name = "cycles";
    } else {
      event.name = fmt::format("event-{}-{:x}", event.attr.type, config);
    }
  }
}

}  // namespace assay::formats
