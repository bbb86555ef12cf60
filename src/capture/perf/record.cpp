#include "capture/perf/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <asm/perf_regs.h>

#include "base/byte_reader.h"

namespace assay::capture {
namespace {

// DWARF number → bit in the kernel's register mask.
constexpr std::array<int, model::kRegCount> kPerfRegister{
    PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
    PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
    PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
    PERF_REG_X86_R15, PERF_REG_X86_IP};

// DWARF numbers in the order in which the kernel writes the registers.
constexpr std::array<uint8_t, model::kRegCount> registers_in_kernel_order() {
  std::array<uint8_t, model::kRegCount> order{};
  for (int i = 0; i < model::kRegCount; ++i) order[i] = static_cast<uint8_t>(i);
  std::sort(order.begin(), order.end(),
            [](int a, int b) { return kPerfRegister[a] < kPerfRegister[b]; });
  return order;
}
constexpr auto kRegisterOrder = registers_in_kernel_order();

std::span<const uint64_t> take_words(ByteReader& in, uint64_t count) {
  if (count > in.left() / 8) {
    in.fail();
    return {};
  }
  auto taken = in.take(count * 8);
  return {reinterpret_cast<const uint64_t*>(taken.data()), taken.size() / 8};
}

perf_event_header header_of(std::span<const std::byte> record) {
  perf_event_header header{};
  if (record.size() >= sizeof header) std::memcpy(&header, record.data(), sizeof header);
  return header;
}

bool header_is_sane(const perf_event_header& header, std::span<const std::byte> record) {
  return header.size == record.size() && header.size >= sizeof header && header.size % 8 == 0;
}

// Non-sample records end with the common fields: pid, tid, time, cpu, reserved, identifier.
constexpr size_t kTrailerBytes = 32;

RecordHead parse_trailer(std::span<const std::byte> trailer) {
  ByteReader in(trailer);
  RecordHead head;
  head.pid = in.fixed<int32_t>();
  head.tid = in.fixed<int32_t>();
  head.time = in.fixed<int64_t>();
  head.cpu = in.fixed<uint32_t>();
  return head;
}

// Splits the kernel's chain at its context markers.
void split_chain(std::span<const uint64_t> chain, SampleRecord& sample) {
  size_t kernel_begin = 0, kernel_end = 0, user_begin = 0, user_end = 0;
  enum { none, kernel, user } context = none;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i] >= PERF_CONTEXT_MAX) {
      context = chain[i] == PERF_CONTEXT_KERNEL ? kernel
                : chain[i] == PERF_CONTEXT_USER ? user
                                                : none;
      if (context == kernel) kernel_begin = kernel_end = i + 1;
      if (context == user) user_begin = user_end = i + 1;
    } else if (context == kernel) {
      kernel_end = i + 1;
    } else if (context == user) {
      user_end = i + 1;
    }
  }
  sample.kernel_chain = chain.subspan(kernel_begin, kernel_end - kernel_begin);
  sample.user_chain = chain.subspan(user_begin, user_end - user_begin);
}

bool parse_registers(ByteReader& in, model::UserRegisters& registers) {
  uint64_t abi = in.fixed<uint64_t>();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) return in.ok();
  auto words = take_words(in, model::kRegCount);
  if (!in.ok() || abi != PERF_SAMPLE_REGS_ABI_64) return in.ok();
  for (int i = 0; i < model::kRegCount; ++i) registers.set(kRegisterOrder[i], words[i]);
  return true;
}

bool parse_stack_fields(ByteReader& in, uint16_t misc, SampleRecord& sample) {
  sample.period = in.fixed<uint64_t>();
  uint64_t chain_length = in.fixed<uint64_t>();
  split_chain(take_words(in, chain_length), sample);
  size_t raw_at = in.offset();
  sample.raw = in.take(in.fixed<uint32_t>());
  if ((in.offset() - raw_at) % 8 != 0) return false;  // words follow
  sample.user_mode = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
  if (!in.ok() || !parse_registers(in, sample.registers)) return false;
  uint64_t copied = in.fixed<uint64_t>();
  if (copied == 0) return in.ok();
  auto copy = in.take(copied);
  uint64_t valid = in.fixed<uint64_t>();
  if (!in.ok()) return false;
  sample.stack = copy.first(std::min<uint64_t>(valid, copied));
  return true;
}

std::optional<Record> parse_sample(ByteReader& in, uint16_t misc, const EventIds& ids) {
  Record record;
  SampleRecord sample;
  sample.kind = ids.kind_of(in.fixed<uint64_t>());
  record.head.pid = in.fixed<int32_t>();
  record.head.tid = in.fixed<int32_t>();
  record.head.time = in.fixed<int64_t>();
  record.head.cpu = in.fixed<uint32_t>();
  in.fixed<uint32_t>();
  if (sample.kind == EventKind::waking) {
    sample.raw = in.take(in.fixed<uint32_t>());
  } else if (sample.kind == EventKind::on_cpu || sample.kind == EventKind::off_cpu ||
             sample.kind == EventKind::off_cpu_bare) {
    if (!parse_stack_fields(in, misc, sample)) return std::nullopt;
  }
  if (!in.ok()) return std::nullopt;
  record.body = sample;
  return record;
}

MmapRecord parse_mmap2(ByteReader& in, uint16_t misc) {
  MmapRecord mmap;
  in.fixed<int32_t>();  // pid and tid: the trailer has them
  in.fixed<int32_t>();
  mmap.start = in.fixed<uint64_t>();
  mmap.length = in.fixed<uint64_t>();
  mmap.file_offset = in.fixed<uint64_t>();
  auto identity = in.take(24);
  if (in.ok() && misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
    size_t size = std::min<size_t>(std::to_integer<size_t>(identity[0]), 20);
    mmap.build_id = {reinterpret_cast<const uint8_t*>(identity.data()) + 4, size};
  }
  constexpr uint32_t kProtExec = 4;
  mmap.executable = in.fixed<uint32_t>() & kProtExec;
  in.fixed<uint32_t>();
  mmap.path = in.last_text();
  return mmap;
}

ForkRecord parse_task(ByteReader& in) {
  ForkRecord task;
  task.pid = in.fixed<int32_t>();
  task.parent_pid = in.fixed<int32_t>();
  task.tid = in.fixed<int32_t>();
  task.parent_tid = in.fixed<int32_t>();
  return task;
}

void parse_body(const perf_event_header& header, ByteReader& in, Record& record) {
  switch (header.type) {
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      record.body = SwitchRecord{(header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0,
                                 (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0};
      break;
    case PERF_RECORD_MMAP2:
      record.body = parse_mmap2(in, header.misc);
      break;
    case PERF_RECORD_COMM:  // the trailer tells who wrote the name, which may be another thread
      record.head.pid = in.fixed<int32_t>();
      record.head.tid = in.fixed<int32_t>();
      record.body = CommRecord{(header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0, in.last_text()};
      break;
    case PERF_RECORD_FORK:
      record.body = parse_task(in);
      break;
    case PERF_RECORD_EXIT: {
      ForkRecord task = parse_task(in);
      record.body = ExitRecord{task.pid, task.tid};
      break;
    }
    case PERF_RECORD_LOST:
      in.fixed<uint64_t>();
      record.body = LostRecord{in.fixed<uint64_t>()};
      break;
    case PERF_RECORD_LOST_SAMPLES:
      record.body = LostRecord{in.fixed<uint64_t>()};
      break;
    case PERF_RECORD_THROTTLE:
      record.body = ThrottleRecord{};
      break;
    default:
      break;
  }
}

}  // namespace

uint64_t user_register_mask() {
  uint64_t mask = 0;
  for (int bit : kPerfRegister) mask |= uint64_t{1} << bit;
  return mask;
}

std::optional<TimeNs> record_time(std::span<const std::byte> record) {
  perf_event_header header = header_of(record);
  if (!header_is_sane(header, record)) return std::nullopt;
  size_t offset =
      header.type == PERF_RECORD_SAMPLE ? sizeof header + 16 : record.size() - kTrailerBytes + 8;
  if (record.size() < sizeof header + kTrailerBytes) return std::nullopt;
  TimeNs time = 0;
  std::memcpy(&time, record.data() + offset, sizeof time);
  return time;
}

std::optional<Record> parse_record(std::span<const std::byte> bytes, const EventIds& ids) {
  perf_event_header header = header_of(bytes);
  if (!header_is_sane(header, bytes)) return std::nullopt;
  auto payload = bytes.subspan(sizeof header);
  if (header.type == PERF_RECORD_SAMPLE) {
    ByteReader in(payload);
    return parse_sample(in, header.misc, ids);
  }
  if (payload.size() < kTrailerBytes) return std::nullopt;
  Record record;
  record.head = parse_trailer(payload.last(kTrailerBytes));
  ByteReader in(payload.first(payload.size() - kTrailerBytes));
  parse_body(header, in, record);
  if (!in.ok()) return std::nullopt;
  return record;
}

std::optional<StackCut> find_stack(std::span<const std::byte> record) {
  ByteReader in(record);
  auto header = in.fixed<perf_event_header>();
  in.take(8 + 8 + 8 + 8);  // identifier, pid/tid, time, cpu
  in.fixed<uint64_t>();    // period
  StackCut cut;
  cut.chain_at = in.offset();
  take_words(in, in.fixed<uint64_t>());
  cut.raw_at = in.offset();
  in.take(in.fixed<uint32_t>());
  cut.raw_bytes = in.offset() - cut.raw_at;
  if (cut.raw_bytes % 8 != 0) return std::nullopt;
  if (in.fixed<uint64_t>() != PERF_SAMPLE_REGS_ABI_NONE) take_words(in, model::kRegCount);
  if (!in.ok() || header.type != PERF_RECORD_SAMPLE) return std::nullopt;
  cut.prefix_bytes = in.offset();
  uint64_t copied = in.fixed<uint64_t>();
  if (copied == 0) return in.ok() ? std::optional(cut) : std::nullopt;
  in.take(copied);
  uint64_t valid = in.fixed<uint64_t>();
  if (!in.ok()) return std::nullopt;
  cut.copy_bytes = static_cast<size_t>(std::min(valid, copied)) & ~size_t{7};
  return cut;
}

}  // namespace assay::capture
