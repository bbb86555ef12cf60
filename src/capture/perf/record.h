// Perf records: bytes of the kernel's ring become typed values.
//
// In: one record at a time, 8-byte aligned, as the kernel wrote it (perf_event_open(2)). Out: a
// Record whose spans point into those bytes. Every size is checked against the record's end: a
// malformed record yields nullopt and is counted by the caller, never read beyond. Threads: pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/clock.h"
#include "model/registers.h"

namespace assay::capture {

// Which of our events a sample belongs to.
// off_cpu_bare is off_cpu without the kernel's part of the stack.
enum class EventKind : uint8_t { side_band, on_cpu, off_cpu, off_cpu_bare, waking, unknown };

// Fields of all records. pid and tid: the thread that the record is about.
struct RecordHead {
  TimeNs time = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  uint32_t cpu = 0;
};

struct SampleRecord {
  EventKind kind = EventKind::unknown;
  uint64_t period = 0;
  std::span<const uint64_t> kernel_chain;  // leaf first; context markers removed
  std::span<const uint64_t> user_chain;
  bool user_mode = false;  // interrupted in user mode
  model::UserRegisters registers;
  std::span<const std::byte> stack;  // from registers.sp() upwards
  std::span<const std::byte> raw;    // tracepoint payload; 4 meaningless bytes for other events
};

struct SwitchRecord {
  bool out = false;
  bool preempted = false;
};

struct MmapRecord {
  uint64_t start = 0, length = 0, file_offset = 0;
  std::span<const uint8_t> build_id;
  bool executable = false;
  std::string_view path;
};

struct CommRecord {
  bool exec = false;
  std::string_view name;
};

struct ForkRecord {
  pid_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
};

struct ExitRecord {
  pid_t pid = 0, tid = 0;
};

struct LostRecord {
  uint64_t count = 0;
};

struct ThrottleRecord {};

struct Record {
  RecordHead head;
  std::variant<std::monostate, SampleRecord, SwitchRecord, MmapRecord, CommRecord, ForkRecord,
               ExitRecord, LostRecord, ThrottleRecord>
      body;
};

// Finds the event of a sample by the kernel's id.
class EventIds {
 public:
  virtual ~EventIds() = default;
  virtual EventKind kind_of(uint64_t id) const = 0;
};

// The layout that all of our events request, so that all records are parsed alike. The fields that
// a sample has beyond the common ones depend on its kind.
inline constexpr uint64_t kCommonSampleType =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
inline constexpr uint64_t kStackSampleType = kCommonSampleType | PERF_SAMPLE_PERIOD |
                                             PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                                             PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
inline constexpr uint64_t kWakingSampleType = kCommonSampleType | PERF_SAMPLE_RAW;
uint64_t user_register_mask();  // perf_event_attr.sample_regs_user

// The record's time without parsing the rest; nullopt when malformed.
std::optional<TimeNs> record_time(std::span<const std::byte> record);
std::optional<Record> parse_record(std::span<const std::byte> record, const EventIds& ids);

// Positions of the parts of a stack sample that can be left out when memory or time is short.
struct StackCut {
  size_t chain_at = 0;      // the callchain's length word
  size_t raw_at = 0;        // the tracepoint payload's size word
  size_t raw_bytes = 0;     // with its size word
  size_t prefix_bytes = 0;  // up to and without the copy's size word
  size_t copy_bytes = 0;    // bytes of stack to keep; 0: none
};
std::optional<StackCut> find_stack(std::span<const std::byte> record);

}  // namespace assay::capture
