#include "formats/perf/sample_layout.h"

#include <array>
#include <bit>

#include "base/byte_reader.h"

namespace assay::formats {
namespace {

constexpr uint64_t kContextMax = static_cast<uint64_t>(-4095);
constexpr uint64_t kContextKernel = static_cast<uint64_t>(-128);
constexpr uint64_t kContextUser = static_cast<uint64_t>(-512);
constexpr uint64_t kBranchHwIndex = 1u << 17;   // PERF_SAMPLE_BRANCH_HW_INDEX
constexpr uint64_t kBranchCounters = 1u << 19;  // PERF_SAMPLE_BRANCH_COUNTERS
constexpr uint64_t kFormatLost = 1u << 4;       // PERF_FORMAT_LOST

// The kernel's number of an x86 register to DWARF's; −1: of no use for unwinding.
constexpr std::array<int, 24> kDwarfOf{0,  3,  2,  1,  4, 5, 6,  7,  16, -1, -1, -1,
                                       -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};

void skip_read_values(const perf_event_attr& attr, ByteReader& in) {
  uint64_t format = attr.read_format;
  uint64_t times = ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0) +
                   ((format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0);
  uint64_t each = 1 + ((format & PERF_FORMAT_ID) != 0) + ((format & kFormatLost) != 0);
  if ((format & PERF_FORMAT_GROUP) == 0) {
    in.skip(8 * (times + each));
    return;
  }
  uint64_t count = in.u64();
  in.skip(8 * times);
  if (count > in.left() / 8 / each) in.skip(UINT64_MAX);
  in.skip(count * 8 * each);
}

void skip_branches(const perf_event_attr& attr, ByteReader& in) {
  uint64_t count = in.u64();
  if ((attr.branch_sample_type & kBranchHwIndex) != 0) in.u64();
  uint64_t each = 24 + ((attr.branch_sample_type & kBranchCounters) != 0 ? 8 : 0);
  if (count > in.left() / each) in.skip(UINT64_MAX);
  in.skip(count * each);
}

// Marks in the chain say whose the addresses behind them are.
void read_chain(ByteReader& in, bool user_mode, SampleScratch& scratch) {
  uint64_t count = in.u64();
  if (count > in.left() / 8) {
    in.skip(UINT64_MAX);
    return;
  }
  const char* words = in.bytes(count * 8).data();
  std::vector<uint64_t>* part = user_mode ? &scratch.user : &scratch.kernel;
  uint64_t begin = 0;
  auto take_up_to = [&](uint64_t end) {
    if (part == nullptr || begin == end) return;
    size_t before = part->size();
    part->resize(before + (end - begin));
    std::memcpy(part->data() + before, words + begin * 8, (end - begin) * 8);
  };
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t ip = 0;
    std::memcpy(&ip, words + i * 8, sizeof ip);
    if (ip < kContextMax) continue;
    take_up_to(i);
    begin = i + 1;
    part = ip == kContextUser ? &scratch.user : ip == kContextKernel ? &scratch.kernel : nullptr;
  }
  take_up_to(count);
}

void read_registers(const perf_event_attr& attr, ByteReader& in, PerfSample& sample) {
  uint64_t abi = in.u64();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) return;
  for (uint64_t mask = attr.sample_regs_user; mask != 0; mask &= mask - 1) {
    auto number = static_cast<size_t>(std::countr_zero(mask));
    uint64_t value = in.u64();
    bool known =
        abi == PERF_SAMPLE_REGS_ABI_64 && number < kDwarfOf.size() && kDwarfOf[number] >= 0;
    if (known) sample.registers.set(kDwarfOf[number], value);
  }
}

void read_stack(ByteReader& in, PerfSample& sample) {
  uint64_t size = in.u64();
  if (size == 0) return;
  std::string_view copy = in.bytes(size);
  uint64_t used = in.u64();
  if (!in.ok()) return;
  copy = copy.substr(0, std::min<uint64_t>(used, copy.size()));
  sample.stack = std::as_bytes(std::span(copy.data(), copy.size()));
}

}  // namespace

std::optional<uint64_t> id_of_sample(const perf_event_attr& attr, std::string_view body) {
  ByteReader in(body);
  uint64_t type = attr.sample_type;
  if ((type & PERF_SAMPLE_IDENTIFIER) == 0) {
    if ((type & PERF_SAMPLE_ID) == 0) return std::nullopt;
    uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    in.skip(8 * static_cast<uint64_t>(std::popcount(type & before)));
  }
  uint64_t id = in.u64();
  return !in.ok() ? std::nullopt : std::optional(id);
}

std::optional<uint64_t> id_of_trailer(const perf_event_attr& attr, std::string_view body) {
  uint64_t type = attr.sample_type;
  uint64_t behind = 8;
  if ((type & PERF_SAMPLE_IDENTIFIER) == 0) {
    if ((type & PERF_SAMPLE_ID) == 0) return std::nullopt;
    behind +=
        8 * static_cast<uint64_t>(std::popcount(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU)));
  }
  if (body.size() < behind) return std::nullopt;
  return ByteReader(body.substr(body.size() - behind)).u64();
}

bool parse_trailer(const perf_event_attr& attr, std::string_view body, PerfHead& head) {
  if (attr.sample_id_all == 0) return true;
  uint64_t type = attr.sample_type;
  uint64_t words = static_cast<uint64_t>(
      std::popcount(type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                            PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)));
  if (body.size() < words * 8) return false;
  ByteReader in(body.substr(body.size() - words * 8));
  if (type & PERF_SAMPLE_TID) {
    head.pid = in.fixed<pid_t>();
    head.tid = in.fixed<pid_t>();
  }
  if (type & PERF_SAMPLE_TIME) head.time = in.fixed<TimeNs>();
  if (type & PERF_SAMPLE_ID) in.u64();
  if (type & PERF_SAMPLE_STREAM_ID) in.u64();
  if (type & PERF_SAMPLE_CPU) head.cpu = static_cast<uint32_t>(in.u64());
  return in.ok();
}

bool parse_sample_head(const perf_event_attr& attr, std::string_view body, PerfHead& head,
                       uint64_t& period) {
  ByteReader in(body);
  uint64_t type = attr.sample_type;
  if (type & PERF_SAMPLE_IDENTIFIER) in.u64();
  if (type & PERF_SAMPLE_IP) in.u64();
  if (type & PERF_SAMPLE_TID) in.u64();
  if (type & PERF_SAMPLE_TIME) head.time = in.fixed<TimeNs>();
  if (type & PERF_SAMPLE_ADDR) in.u64();
  if (type & PERF_SAMPLE_ID) in.u64();
  if (type & PERF_SAMPLE_STREAM_ID) in.u64();
  if (type & PERF_SAMPLE_CPU) in.u64();
  period = type & PERF_SAMPLE_PERIOD ? in.u64() : attr.freq != 0 ? 1 : attr.sample_period;
  return in.ok();
}

bool parse_sample(const perf_event_attr& attr, uint16_t misc, std::string_view body, PerfHead& head,
                  PerfSample& sample, SampleScratch& scratch) {
  ByteReader in(body);
  uint64_t type = attr.sample_type;
  scratch.kernel.clear();
  scratch.user.clear();
  sample.user_mode = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
  if (type & PERF_SAMPLE_IDENTIFIER) in.u64();
  if (type & PERF_SAMPLE_IP) sample.ip = in.u64();
  if (type & PERF_SAMPLE_TID) {
    head.pid = in.fixed<pid_t>();
    head.tid = in.fixed<pid_t>();
  }
  if (type & PERF_SAMPLE_TIME) head.time = in.fixed<TimeNs>();
  if (type & PERF_SAMPLE_ADDR) in.u64();
  if (type & PERF_SAMPLE_ID) in.u64();
  if (type & PERF_SAMPLE_STREAM_ID) in.u64();
  if (type & PERF_SAMPLE_CPU) head.cpu = static_cast<uint32_t>(in.u64());
  sample.period = type & PERF_SAMPLE_PERIOD ? in.u64() : attr.freq != 0 ? 1 : attr.sample_period;
  if (type & PERF_SAMPLE_READ) skip_read_values(attr, in);
  if (type & PERF_SAMPLE_CALLCHAIN) {
    sample.has_chain = true;
    read_chain(in, sample.user_mode, scratch);
  }
  if (type & PERF_SAMPLE_RAW) in.skip(in.u32());
  if (type & PERF_SAMPLE_BRANCH_STACK) skip_branches(attr, in);
  if (type & PERF_SAMPLE_REGS_USER) read_registers(attr, in, sample);
  if (type & PERF_SAMPLE_STACK_USER) read_stack(in, sample);
  sample.kernel_chain = scratch.kernel;
  sample.user_chain = scratch.user;
  return in.ok();
}

}  // namespace assay::formats
