// perf.data: the file's records, in the order of time, with every field checked.
//
// In: a file as `perf record` writes it, or a pipe's bytes (-o -); zstd-compressed records are
// unpacked. The layout of samples follows each event's attributes. Out: to a visitor, records by
// time; the index that this needs costs 24 bytes a record. Spans that a visitor gets are valid
// during the call. Failures: an Error with the file's name and the offset of the record; nothing is
// read beyond a record's end. Spec: tools/perf/Documentation/perf.data-file-format.txt and
// perf_event_open(2).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/clock.h"
#include "formats/import/input.h"
#include "model/registers.h"

namespace assay::formats {

struct PerfEvent {
  perf_event_attr attr{};
  std::string name;
  uint64_t samples = 0;
  double period_sum = 0;

  bool is_clock() const {
    return attr.type == PERF_TYPE_SOFTWARE &&
           (attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK);
  }
};

// Of every record; what the file does not say is 0.
struct PerfHead {
  TimeNs time = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  uint32_t cpu = 0;
  size_t event = 0;
};

struct PerfSample {
  uint64_t ip = 0;
  uint64_t period = 0;
  bool user_mode = false;
  std::span<const uint64_t> kernel_chain;  // leaf first, without context marks
  std::span<const uint64_t> user_chain;
  bool has_chain = false;
  model::UserRegisters registers;
  std::span<const std::byte> stack;  // from registers.sp() upwards
};

struct PerfMapping {
  pid_t pid = 0;
  uint64_t start = 0, length = 0, file_offset = 0;
  std::string_view path;
  std::string build_id;  // hex; empty when the record has none
  bool executable = false;
};

class PerfDataVisitor {
 public:
  virtual ~PerfDataVisitor() = default;
  virtual void sample(const PerfHead& head, const PerfSample& sample) = 0;
  virtual void mapped(const PerfHead& head, const PerfMapping& mapping) = 0;
  virtual void named(const PerfHead& head, std::string_view name, bool exec) = 0;
  virtual void forked(const PerfHead& head, pid_t parent_pid) = 0;
  virtual void exited(const PerfHead& head) = 0;
  virtual void switched(const PerfHead& head, bool out, bool preempted) = 0;
  virtual void lost(const PerfHead& head, uint64_t count) = 0;
  // After every record; an error ends the visit.
  virtual Result<void> next() { return {}; }
};

class PerfData {
 public:
  // `input` must outlive it.
  static Result<PerfData> open(const Input& input);

  const std::vector<PerfEvent>& events() const { return events_; }
  const std::map<std::string, std::string>& build_ids() const { return build_ids_; }  // by path
  const std::map<std::string, std::string>& facts() const { return facts_; }
  TimeNs first_time() const { return first_time_; }  // of the records with a time
  TimeNs last_time() const { return last_time_; }
  bool has_switches() const { return has_switches_; }
  bool was_cut() const { return was_cut_; }  // perf was killed: the header knows no size
  Result<void> visit(PerfDataVisitor& visitor) const;

 private:
  friend class PerfDataLoader;
  struct Entry {
    TimeNs time;
    const char* at;
    uint32_t size;
    uint32_t event;
  };
  explicit PerfData(const Input& input) : input_(&input) {}
  size_t offset_of(const Entry& entry) const;

  const Input* input_;
  std::vector<PerfEvent> events_;
  std::unordered_map<uint64_t, uint32_t> event_of_id_;
  std::map<std::string, std::string> build_ids_, facts_;
  std::vector<Entry> index_;
  std::vector<std::pair<std::unique_ptr<std::string>, size_t>>
      unpacked_;  // and where it was packed
  TimeNs first_time_ = INT64_MAX, last_time_ = INT64_MIN;
  bool has_switches_ = false, was_cut_ = false;
};

bool looks_like_perf_data(std::string_view bytes);

}  // namespace assay::formats
