// BpfEvidence: records of the BPF programs become samples and waits.
//
// In: records in time order, as Recording hands them over. Stacks come once and are referred to by
// number from then on; one that the kernel could not walk comes as registers and bytes and is
// walked here. Out: samples to Recording, waits to OffCpu. In check mode it also compares
// the kernel's walks with the Unwinder's on the same bytes. Threads: the consumer's. Failures: a
// stack whose record was lost is marked as lost; a record that is too short is malformed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/bpf/bpf_programs.h"
#include "capture/off_cpu.h"
#include "evidence/stacks/stack_builder.h"
#include "evidence/tasks.h"
#include "evidence/wait_sites.h"
#include "symbol/symbolizer.h"

namespace assay::evidence {

// What check mode found: walks compared, and those that differ by cause.
struct BpfTruth {
  uint64_t compared = 0;
  std::map<std::string, uint64_t> differences;
  std::string first_difference;  // both stacks as text, for debugging
};

class BpfEvidence {
 public:
  struct Parts {
    capture::BpfPrograms& programs;
    AddressSpaces& spaces;
    unwind::Unwinder& unwinder;
    StackBuilder& stacks;
    WaitSites& sites;
    Tasks& tasks;
    symbol::Symbolizer& symbolizer;
  };
  // The thread behind a record; nullopt when it is not the target's.
  using TaskOf = std::function<std::optional<Task>(const capture::RecordHead&)>;
  using AddSample = std::function<void(TimeNs, model::ThreadId, model::StackId, uint16_t cpu)>;

  BpfEvidence(const Parts& parts, TaskOf task_of, AddSample add_sample, capture::OffCpu& off_cpu,
              TimeNs window_begin);

  static bool is_record(std::span<const std::byte> bytes);
  // False when the record is malformed.
  bool handle(std::span<const std::byte> bytes, TimeNs window_end);
  // Tells OffCpu of the waits that are not over; once, at the end.
  void take_open_waits(TimeNs window_end);
  // The same as waits that last until `now`, for a run that is cut off.
  void for_each_open_wait(TimeNs now, const std::function<void(const model::Wait&)>& visit);

  uint64_t raw_stacks() const { return raw_stacks_; }
  uint64_t frame_pointer_stacks() const { return frame_pointer_stacks_; }
  uint64_t stacks() const { return stacks_; }
  const BpfTruth& truth() const { return truth_; }

 private:
  struct Kernel {
    std::vector<uint64_t> chain;
    std::unordered_map<model::StackId, model::StackId> on_top_of;  // by user stack
  };

  bool handle_stack(std::span<const std::byte> bytes);
  bool handle_raw(std::span<const std::byte> bytes);
  bool handle_kernel(std::span<const std::byte> bytes);
  void handle_wait(const capture::bpf::wait_record& record, TimeNs window_end);
  void handle_sample(const capture::bpf::sample_record& record, TimeNs window_end);
  void compare(pid_t pid, uint32_t id, const unwind::RawStack& raw);
  capture::WaitSite site_of(const capture::bpf::wait_record& record);
  model::StackId user_stack(uint32_t id) const;
  model::StackId whole_stack(uint32_t user, uint32_t kernel);
  model::ThreadId thread_in(pid_t pid, pid_t tid) const;
  void retire(uint32_t user, uint32_t kernel, TimeNs now);
  void retire_due(TimeNs now);
  size_t scheduler_frame(std::span<const uint64_t> chain);

  Parts parts_;
  TaskOf task_of_;
  AddSample add_sample_;
  capture::OffCpu& off_cpu_;
  TimeNs window_begin_;
  model::StackId lost_;
  std::unordered_map<uint32_t, model::StackId> users_;
  std::unordered_map<uint32_t, Kernel> kernels_;
  struct Retired {
    TimeNs time;
    uint32_t user, kernel;
  };
  std::deque<Retired> retired_;
  std::unordered_map<uint64_t, bool> is_schedule_;  // by kernel address
  std::vector<unwind::UserFrame> frames_;
  std::unordered_map<uint32_t, std::vector<unwind::UserFrame>> to_compare_;
  uint64_t stacks_ = 0, raw_stacks_ = 0, frame_pointer_stacks_ = 0;
  BpfTruth truth_;
};

// pt_regs to DWARF numbers. In a system call rcx and r11 are the kernel's.
model::UserRegisters registers_of(const capture::bpf::raw_regs& registers);

}  // namespace assay::evidence
