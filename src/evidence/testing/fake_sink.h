// FakeSink: keeps what a capture found out, for tests to look at. Threads: any; what it kept is
// read when the others have ended.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "evidence/sink.h"

namespace assay::evidence::testing {

class FakeSink final : public Sink {
 public:
  void put_process(const model::Process& process) override { keep(processes, process); }
  void put_thread(const model::Thread& thread) override { keep(threads, thread); }
  void add_fact(const model::Fact& fact) override { keep(facts, fact); }
  void add_module(const model::Module& module) override { keep(modules, module); }
  void add_mapping(model::ProcessId process, const model::Mapping& mapping, TimeNs) override {
    keep(mappings, std::pair(process, mapping));
  }
  void add_frame(model::FrameId, const model::Frame& frame) override { keep(frames, frame); }
  void add_stack(model::StackId id, const model::StackNode& node) override {
    std::lock_guard lock(mutex_);
    stacks[id] = node;
  }
  void put_locations(model::FrameId id, std::span<const model::Location> locations) override {
    std::lock_guard lock(mutex_);
    names[id].push_back(locations.empty() ? "" : locations.front().function);
  }
  void put_data_name(const model::DataName& name) override { keep(data_names, name); }
  void put_source_line(const std::string& file, uint32_t line, const std::string& text) override {
    std::lock_guard lock(mutex_);
    source[{file, line}] = text;
  }
  void add_sample(const model::Sample& sample) override { keep(samples, sample); }
  void add_wait(const model::Wait& wait) override { keep(waits, wait); }
  void put_open_waits(std::vector<model::Wait> waits_now) override {
    std::lock_guard lock(mutex_);
    open_waits = std::move(waits_now);
  }
  void add_heap_alloc(const model::HeapAlloc& alloc) override { keep(allocs, alloc); }
  void add_heap_free(const model::HeapFree& free) override { keep(frees, free); }
  void add_heap_snapshot(const model::HeapSnapshot& snapshot) override {
    keep(snapshots, snapshot);
  }
  void add_loss(const model::Loss& loss) override { keep(losses, loss); }
  void add_note(const model::QualityNote& note) override { keep(notes, note); }

  uint64_t lost(model::LossKind kind) const {
    uint64_t sum = 0;
    for (const model::Loss& loss : losses) sum += loss.kind == kind ? loss.count : 0;
    return sum;
  }
  // The addresses of a stack, leaf first.
  std::vector<uint64_t> addresses(model::StackId stack) const {
    std::vector<uint64_t> out;
    for (; stack.value != 0; stack = stacks.at(stack).parent)
      out.push_back(frames.at(stacks.at(stack).frame.value).address);
    return out;
  }

  std::vector<model::Process> processes;
  std::vector<model::Thread> threads;
  std::vector<model::Fact> facts;
  std::vector<model::Module> modules;
  std::vector<std::pair<model::ProcessId, model::Mapping>> mappings;
  std::vector<model::Frame> frames;  // by id
  std::map<model::StackId, model::StackNode> stacks;
  std::map<model::FrameId, std::vector<std::string>> names;  // one for each time they were put
  std::vector<model::DataName> data_names;
  std::map<std::pair<std::string, uint32_t>, std::string> source;
  std::vector<model::Sample> samples;
  std::vector<model::Wait> waits, open_waits;
  std::vector<model::HeapAlloc> allocs;
  std::vector<model::HeapFree> frees;
  std::vector<model::HeapSnapshot> snapshots;
  std::vector<model::Loss> losses;
  std::vector<model::QualityNote> notes;

 private:
  template <class T>
  void keep(std::vector<T>& all, const T& one) {
    std::lock_guard lock(mutex_);
    all.push_back(one);
  }
  std::mutex mutex_;
};

}  // namespace assay::evidence::testing
