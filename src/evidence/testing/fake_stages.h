// What evidence/ asks of the stages beside it, answered by tables that a test fills: names, walks,
// events, and the BPF programs' end in the kernel.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capture/bpf/bpf_programs.h"
#include "evidence/recorded_events.h"
#include "symbol/symbolizer.h"
#include "unwind/unwinder.h"

namespace assay::evidence::testing {

// Names by (module, address); what has none is called by its address. Threads: any.
class FakeSymbolizer final : public symbol::Symbolizer {
 public:
  void add_module(pid_t, const model::Mapping&, const model::Module&) override {}
  std::vector<model::Location> resolve(model::ModuleId module, uint64_t address) override {
    std::lock_guard lock(mutex_);
    ++resolved_;
    auto it = names_.find({module.value, address});
    model::Location out;
    out.function = it == names_.end() ? std::to_string(address) : it->second;
    return {out};
  }
  bool has_name(model::ModuleId module, uint64_t address) override {
    std::lock_guard lock(mutex_);
    return !late_modules_ || names_.contains({module.value, address});
  }
  std::vector<std::vector<model::Location>> resolve_all(std::span<const model::Frame>) override {
    return {};
  }
  std::string resolve_data(model::ModuleId module, uint64_t address) override {
    std::lock_guard lock(mutex_);
    auto it = data_.find({module.value, address});
    return it == data_.end() ? "" : it->second;
  }
  symbol::ModuleStatus module_status(model::ModuleId) const override { return {}; }

  void name(model::ModuleId module, uint64_t address, const std::string& function) {
    std::lock_guard lock(mutex_);
    names_[{module.value, address}] = function;
  }
  void name_data(model::ModuleId module, uint64_t address, const std::string& variable) {
    std::lock_guard lock(mutex_);
    data_[{module.value, address}] = variable;
  }
  // Code whose names come later: has_name() is false until there is one.
  void expect_late_names() { late_modules_ = true; }
  int resolved() const {
    std::lock_guard lock(mutex_);
    return resolved_;
  }

 private:
  using Key = std::pair<uint32_t, uint64_t>;
  mutable std::mutex mutex_;
  std::map<Key, std::string> names_, data_;
  int resolved_ = 0;
  bool late_modules_ = false;
};

// Every walk ends with the same frames.
class FakeUnwinder final : public unwind::Unwinder {
 public:
  void prepare(pid_t, const model::Mapping&, const model::Module&) override {}
  const unwind::UserStack& unwind(const unwind::RawStack& raw,
                                  const model::AddressSpace&) override {
    ++walks;
    last_registers = raw.registers;
    last_copy_bytes = raw.copy.size();
    return result;
  }
  void forget_thread(pid_t tid) override { forgotten.push_back(tid); }
  std::shared_ptr<const unwind::Table> table_of(model::ModuleId) const override { return nullptr; }
  const unwind::UnwindStats& stats() const override { return unwind_stats; }

  unwind::UserStack result;
  unwind::UnwindStats unwind_stats;
  model::UserRegisters last_registers;
  size_t last_copy_bytes = 0;
  int walks = 0;
  std::vector<pid_t> forgotten;
};

// An event's id is its kind. Of a payload, the first word is who goes (or is woken), the second who
// comes.
class FakeEvents final : public RecordedEvents {
 public:
  static uint64_t id_of(capture::EventKind kind) { return static_cast<uint64_t>(kind) + 1; }
  static std::vector<std::byte> payload(pid_t first, pid_t second = 0, bool preempted = false) {
    std::vector<std::byte> raw;
    for (int word : {first, second, static_cast<int>(preempted)}) {
      auto bytes = std::as_bytes(std::span(&word, 1));
      raw.insert(raw.end(), bytes.begin(), bytes.end());
    }
    return raw;
  }

  capture::EventKind kind_of(uint64_t id) const override {
    return id == 0 || id > id_of(capture::EventKind::waking) ? capture::EventKind::unknown
                                                             : capture::EventKind(id - 1);
  }
  std::optional<capture::SwitchTracepoint::Switch> switch_of(
      std::span<const std::byte> raw) const override {
    if (!has_switches || raw.size() < 12) return std::nullopt;
    return capture::SwitchTracepoint::Switch{word(raw, 0), word(raw, 1), word(raw, 2) != 0};
  }
  pid_t woken_tid(std::span<const std::byte> raw) const override {
    return raw.size() < 4 ? -1 : word(raw, 0);
  }
  int64_t sample_period_ns() const override { return 10'000'000; }
  bool has_off_cpu_stacks() const override { return off_cpu_stacks; }
  bool sees_whole_cpus() const override { return whole_cpus; }
  uint64_t lost_records() const override { return lost; }

  bool has_switches = true, off_cpu_stacks = true, whole_cpus = true;
  uint64_t lost = 0;

 private:
  static int word(std::span<const std::byte> raw, size_t index) {
    int value = 0;
    std::memcpy(&value, raw.data() + index * sizeof value, sizeof value);
    return value;
  }
};

class FakeBpfPrograms final : public capture::BpfPrograms {
 public:
  void drain(capture::Pressure, capture::Batch&) override {}
  Result<void> attach(const perf_event_attr&) override { return {}; }
  Result<void> reopen_cpu(int) override { return {}; }
  void detach() override {}
  bool add_process(pid_t pid, uint64_t code) override {
    watched[pid] = code;
    return watched.size() <= most_processes;
  }
  void update_process(pid_t pid, uint64_t code) override { watched[pid] = code; }
  std::span<capture::bpf::range> ranges() override { return range_memory; }
  uint32_t* new_chunk(uint32_t) override { return nullptr; }
  capture::BpfCounters counters() const override { return {}; }
  std::vector<capture::bpf::wait_record> open_waits() override { return waits; }
  std::vector<capture::bpf::thread_registers> thread_registers() override { return registers; }
  size_t ring_bytes() const override { return 0; }
  bool takes_truth() const override { return truth; }

  std::map<pid_t, uint64_t> watched;  // code by pid
  size_t most_processes = 100;
  std::vector<capture::bpf::range> range_memory = std::vector<capture::bpf::range>(64);
  std::vector<capture::bpf::wait_record> waits;
  std::vector<capture::bpf::thread_registers> registers;
  bool truth = false;
};

}  // namespace assay::evidence::testing
