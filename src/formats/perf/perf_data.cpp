#include "formats/perf/perf_data.h"

#include "base/byte_reader.h"
#include "formats/perf/perf_data_loader.h"
#include "formats/perf/sample_layout.h"

namespace assay::formats {
namespace {

constexpr uint16_t kMappedBuildId = 1u << 14;  // PERF_RECORD_MISC_MMAP_BUILD_ID
constexpr uint16_t kMappedData = 1u << 13;     // PERF_RECORD_MISC_MMAP_DATA
constexpr uint16_t kCommExec = 1u << 13;       // PERF_RECORD_MISC_COMM_EXEC
constexpr uint32_t kProtExec = 4;

bool parse_mapping(const perf_event_header& header, std::string_view body, PerfMapping& mapping) {
  ByteReader in(body);
  mapping.pid = in.fixed<pid_t>();
  in.u32();
  mapping.start = in.u64();
  mapping.length = in.u64();
  mapping.file_offset = in.u64();
  mapping.executable = (header.misc & kMappedData) == 0;
  if (header.type == PERF_RECORD_MMAP2) {
    std::string_view identity = in.bytes(24);
    mapping.executable = (in.u32() & kProtExec) != 0;
    in.u32();
    if (in.ok() && (header.misc & kMappedBuildId) != 0) {
      size_t size = std::min<size_t>(static_cast<uint8_t>(identity[0]), 20);
      for (size_t i = 0; i < size; ++i) {
        mapping.build_id += fmt::format("{:02x}", static_cast<uint8_t>(identity[4 + i]));
      }
    }
  }
  mapping.path = in.last_text();
  return in.ok();
}

bool visit_switch(const perf_event_header& header, const PerfHead& head, PerfDataVisitor& visitor) {
  bool out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
  visitor.switched(head, out, out && (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
  return true;
}

// A record that is no sample; false when its bytes end too soon.
bool visit_other(const perf_event_header& header, std::string_view body, PerfHead head,
                 PerfDataVisitor& visitor) {
  ByteReader in(body);
  switch (header.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2: {
      PerfMapping mapping;
      if (!parse_mapping(header, body, mapping)) return false;
      head.pid = mapping.pid;
      visitor.mapped(head, mapping);
      return true;
    }
    case PERF_RECORD_COMM:
      head.pid = in.fixed<pid_t>();
      head.tid = in.fixed<pid_t>();
      if (!in.ok()) return false;
      visitor.named(head, in.last_text(), (header.misc & kCommExec) != 0);
      return true;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      head.pid = in.fixed<pid_t>();
      auto parent_pid = in.fixed<pid_t>();
      head.tid = in.fixed<pid_t>();
      if (!in.ok()) return false;
      if (header.type == PERF_RECORD_FORK) visitor.forked(head, parent_pid);
      if (header.type == PERF_RECORD_EXIT) visitor.exited(head);
      return true;
    }
    case PERF_RECORD_LOST:
      in.u64();
      visitor.lost(head, in.u64());
      return in.ok();
    case PERF_RECORD_LOST_SAMPLES:
      visitor.lost(head, in.u64());
      return in.ok();
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      return visit_switch(header, head, visitor);
    default:
      return true;
  }
}

}  // namespace

Result<PerfData> PerfData::open(const Input& input) {
  return PerfDataLoader(input).load();
}

size_t PerfData::offset_of(const Entry& entry) const {
  std::string_view bytes = input_->bytes();
  if (entry.at >= bytes.data() && entry.at < bytes.data() + bytes.size()) {
    return static_cast<size_t>(entry.at - bytes.data());
  }
  for (const auto& [plain, offset] : unpacked_) {
    if (entry.at >= plain->data() && entry.at < plain->data() + plain->size()) return offset;
  }
  return 0;
}

Result<void> PerfData::visit(PerfDataVisitor& visitor) const {
  SampleScratch scratch;
  for (const Entry& entry : index_) {
    perf_event_header header{};
    std::memcpy(&header, entry.at, sizeof header);
    std::string_view body(entry.at + sizeof header, entry.size - sizeof header);
    const perf_event_attr& attr = events_[entry.event].attr;
    PerfHead head;
    head.event = entry.event;
    bool well = true;
    if (header.type == PERF_RECORD_SAMPLE) {
      PerfSample sample;
      well = parse_sample(attr, header.misc, body, head, sample, scratch);
      if (well) visitor.sample(head, sample);
    } else {
      well = parse_trailer(attr, body, head) && visit_other(header, body, head, visitor);
    }
    if (!well) return input_->fail_at(offset_of(entry), "a malformed record");
    if (auto done = visitor.next(); !done) return done;
  }
  return {};
}

}  // namespace assay::formats
