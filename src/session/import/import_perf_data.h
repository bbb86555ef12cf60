// perf.data into a run: address spaces, unwinding, waits and weights of its samples.
//
// In: a PerfData in time order. User stacks are unwound by call-frame information where the file
// has copies of them, else taken from the kernel's walk along frame pointers. SWITCH records become
// waits; stacks of sched_switch events are theirs. The files of modules are sought on this machine
// and must have the same build id. Failures: the builder's.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "capture/off_cpu.h"
#include "formats/perf/perf_data.h"
#include "formats/import/reading.h"
#include "formats/import/run_builder.h"
#include "model/address_space.h"
#include "session/import/import_names.h"
#include "evidence/stacks/stack_trails.h"
#include "unwind/unwinder.h"

namespace assay::session {

class PerfDataImport final : public formats::PerfDataVisitor {
 public:
  PerfDataImport(const formats::PerfData& data, const formats::ReadOptions& options,
                 formats::RunBuilder& builder, ImportNames& names, const std::string& cache_dir);

  Result<void> run();

 private:
  struct Process {
    model::AddressSpace space;
    uint32_t space_number = 0;  // of what `space` holds, for trails_; 0: none yet
    std::string exe;
  };

  void sample(const formats::PerfHead& head, const formats::PerfSample& sample) override;
  void mapped(const formats::PerfHead& head, const formats::PerfMapping& mapping) override;
  void named(const formats::PerfHead& head, std::string_view name, bool exec) override;
  void forked(const formats::PerfHead& head, pid_t parent_pid) override;
  void exited(const formats::PerfHead& head) override;
  void switched(const formats::PerfHead& head, bool out, bool preempted) override;
  void lost(const formats::PerfHead& head, uint64_t count) override;
  Result<void> next() override { return builder_.flush_if_full(); }

  void choose_event();
  model::ThreadId thread(const formats::PerfHead& head);
  model::StackId stack(const formats::PerfHead& head, const formats::PerfSample& sample);
  model::StackEnd find_user_addresses(const formats::PerfHead& head,
                                      const formats::PerfSample& sample);
  uint32_t space_number(pid_t pid);
  model::StackId marker(model::StackEnd end);
  model::StackId push(model::StackId parent, pid_t pid, uint64_t address);
  model::StackId push_kernel(model::StackId parent, uint64_t address);
  int64_t weight(const formats::PerfSample& sample) const;
  void add_notes();

  const formats::PerfData& data_;
  formats::ReadOptions options_;
  formats::RunBuilder& builder_;
  ImportNames& namer_;
  std::unique_ptr<unwind::Unwinder> unwinder_;
  capture::OffCpu off_cpu_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, std::string> names_;  // of threads, by tid
  std::unordered_map<pid_t, model::ThreadId> threads_;
  size_t event_ = 0;             // whose samples make the run
  std::vector<bool> is_switch_;  // by event: its samples are stacks of switches
  double scale_ = 1;             // period to ns
  uint64_t left_out_ = 0;
  bool has_stacks_ = false;
  uint64_t next_naming_ = 256;             // samples, after which frames are named beside
  std::optional<model::ModuleId> kernel_;  // once a frame of it was seen
  evidence::StackTrails trails_;
  uint32_t last_space_number_ = 0;
  std::array<model::StackId, model::kStackEndCount> markers_;  // by end; 0: not made yet
  std::vector<uint64_t> words_;                                // of the stack at hand, root first
};

}  // namespace assay::session
