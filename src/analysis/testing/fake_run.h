// FakeRun: a run in memory, for tests and benchmarks of what reads runs.
//
// Nouns are added by name; ids, frames and stacks are interned on the way. It is a run::Reader, so
// analyse() and everything after it cannot tell it from a file. Test support only.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "run/reader.h"

namespace assay::analysis {

class FakeRun : public run::Reader {
 public:
  FakeRun() {
    contents_.info.window_end_ns = kNsPerSecond;
    contents_.info.sample_period_ns = 10 * kNsPerMs;
    contents_.info.finished = true;
    contents_.info.end_reason = "time";
    contents_.stacks.resize(1);
  }

  run::Contents& edit() { return contents_; }
  std::vector<model::Wait>& edit_waits() { return waits_; }

  model::ProcessId add_process(pid_t pid, const std::string& exe,
                               const std::string& role = "main") {
    model::Process process;
    process.id = {static_cast<uint32_t>(contents_.processes.size())};
    process.pid = pid;
    process.exe = exe;
    process.comm = exe.substr(exe.rfind('/') + 1);
    process.role = role;
    contents_.processes.push_back(process);
    return process.id;
  }

  model::ThreadId add_thread(model::ProcessId process, pid_t tid, const std::string& name,
                             const std::string& pool = "", TimeNs begin_ns = 0,
                             TimeNs end_ns = model::kStillRunning) {
    model::ThreadId id{static_cast<uint32_t>(contents_.threads.size())};
    contents_.threads.push_back(
        {id, process, tid, name, pool.empty() ? name : pool, begin_ns, end_ns});
    return id;
  }

  // "k:name" is a kernel function, "?:0x12" an unnamed one, "!:3" the marker of that StackEnd,
  // "lib:name" of another module, "a|b" the inlined function b in a; else a user function of
  // "server".
  model::FrameId frame(const std::string& text) {
    auto [it, added] = frames_.try_emplace(text);
    if (!added) return it->second;
    using enum model::ModuleKind;
    size_t colon = text.find(':');
    bool qualified = colon != text.npos && text.substr(colon, 2) != "::";
    std::string where = qualified ? text.substr(0, colon) : "server";
    std::string name = qualified ? text.substr(colon + 1) : text;
    model::Frame frame{};
    frame.address = 0x1000 + 16 * contents_.frames.size();
    std::vector<model::Location> locations;
    if (where == "!") {
      frame = {module(marker, "[assay]"), std::stoull(name)};
    } else if (where == "?") {
      frame = {module(elf, "/opt/server"), std::stoull(name, nullptr, 0)};
    } else {
      frame.module = where == "k"        ? module(kernel, "[kernel]")
                     : where == "server" ? module(elf, "/opt/server")
                                         : module(elf, "/usr/lib/" + where);
      locations = named(name, where);
    }
    it->second = {static_cast<uint32_t>(contents_.frames.size())};
    contents_.frames.push_back(frame);
    contents_.locations.push_back(std::move(locations));
    return it->second;
  }

  // Another address in a function that frame() named: a new frame of the same function.
  model::FrameId same_function(model::FrameId of) {
    model::FrameId id{static_cast<uint32_t>(contents_.frames.size())};
    model::Frame copy = contents_.frames[of.value];
    copy.address += 0x100000 + id.value;
    contents_.frames.push_back(copy);
    contents_.locations.push_back(std::vector(contents_.locations[of.value]));
    return id;
  }

  model::StackId stack(const std::vector<std::string>& root_first) {
    model::StackId id{};
    for (const std::string& text : root_first) id = push(id, frame(text));
    return id;
  }
  model::StackId push(model::StackId parent, model::FrameId leaf) {
    auto [it, added] = stacks_.try_emplace(model::StackNode{parent, leaf});
    if (added) {
      it->second = {static_cast<uint32_t>(contents_.stacks.size())};
      contents_.stacks.push_back({parent, leaf});
    }
    return it->second;
  }

  // One sampled allocation; never freed when `freed_at` is not given.
  void add_alloc(model::ThreadId thread, model::StackId stack, TimeNs time, uint64_t size,
                 uint64_t rate, TimeNs freed_at = INT64_MAX) {
    contents_.has_heap = true;
    heap_allocs_.push_back({time, thread, stack, heap_allocs_.size(), size, rate, {}});
    if (freed_at != INT64_MAX) heap_frees_.push_back({freed_at, thread, heap_allocs_.back().id});
  }

  // A sum of an imported heap profile.
  void add_heap_sum(const model::HeapSum& sum) {
    contents_.has_heap = contents_.heap_imported = true;
    contents_.heap_sums.push_back(sum);
  }

  void add_sample(model::ThreadId thread, model::StackId stack, TimeNs time, int64_t weight_ns) {
    samples_.push_back({time, thread, stack, weight_ns, 0});
  }
  // `count` samples of equal weight, spread over the window.
  void add_samples(model::ThreadId thread, model::StackId stack, int count, int64_t weight_ns) {
    for (int i = 0; i < count; ++i) {
      add_sample(thread, stack, contents_.info.window_begin_ns + i, weight_ns);
    }
  }
  model::Wait& add_wait(model::ThreadId thread, model::StackId stack, TimeNs start,
                        int64_t duration_ns, std::initializer_list<model::WaitFlag> flags = {}) {
    model::Wait wait;
    wait.thread = thread;
    wait.stack = stack;
    wait.start = start;
    wait.duration_ns = duration_ns;
    for (model::WaitFlag flag : flags) wait.set(flag);
    return waits_.emplace_back(wait);
  }

  void add_series(model::SeriesScope scope, uint32_t owner, const std::string& name,
                  const std::vector<std::pair<TimeNs, int64_t>>& values) {
    model::Series series;
    series.id = {static_cast<uint32_t>(contents_.series.size())};
    series.scope = scope;
    series.kind = model::SeriesKind::cumulative;
    series.owner = owner;
    series.name = name;
    contents_.series.push_back(series);
    auto& points = points_.emplace_back();
    for (auto [time, value] : values) points.push_back({series.id, time, value});
  }

  const run::Contents& contents() const override { return contents_; }
  Result<uint64_t> row_count() const override { return samples_.size() + waits_.size(); }

  Result<void> for_each_sample(
      const run::TimeRange& range,
      const std::function<void(const model::Sample&)>& visit) const override {
    for (const model::Sample& sample : samples_) {
      if (sample.time >= range.begin_ns && sample.time < range.end_ns) visit(sample);
    }
    return {};
  }
  Result<void> for_each_wait(const run::TimeRange& range,
                             const std::function<void(const model::Wait&)>& visit) const override {
    for (const model::Wait& wait : waits_) {
      bool before = wait.start < range.begin_ns && range.begin_ns - wait.start >= wait.duration_ns;
      if (!before && wait.start < range.end_ns) visit(wait);
    }
    return {};
  }
  Result<void> for_each_heap_alloc(
      const run::TimeRange& range,
      const std::function<void(const model::HeapAlloc&)>& visit) const override {
    for (const model::HeapAlloc& row : heap_allocs_) {
      if (row.time >= range.begin_ns && row.time < range.end_ns) visit(row);
    }
    return {};
  }
  Result<void> for_each_heap_free(
      const run::TimeRange& range,
      const std::function<void(const model::HeapFree&)>& visit) const override {
    for (const model::HeapFree& row : heap_frees_) {
      if (row.time >= range.begin_ns && row.time < range.end_ns) visit(row);
    }
    return {};
  }
  Result<std::vector<model::Point>> points(model::SeriesId series) const override {
    return points_.at(series.value);
  }
  Result<std::string> source_line(const std::string&, uint32_t) const override { return ""; }

 private:
  static std::vector<model::Location> named(const std::string& name, const std::string& where) {
    std::vector<model::Location> innermost_first;
    size_t begin = 0;
    uint32_t line = 10;
    while (true) {
      size_t bar = name.find('|', begin);
      model::Location location;
      location.function = name.substr(begin, bar == name.npos ? bar : bar - begin);
      if (where == "server") {
        location.file = "/src/server.cpp";
        location.function_line = line;
        location.line = line + 3;
      }
      location.inlined = begin > 0;
      innermost_first.insert(innermost_first.begin(), location);
      if (bar == name.npos) return innermost_first;
      begin = bar + 1;
      line += 10;
    }
  }
  model::ModuleId module(model::ModuleKind kind, const std::string& path) {
    for (const model::Module& known : contents_.modules) {
      if (known.kind == kind && known.path == path) return known.id;
    }
    model::ModuleId id{static_cast<uint32_t>(contents_.modules.size())};
    contents_.modules.push_back({id, kind, path, ""});
    return id;
  }

  run::Contents contents_;
  std::map<std::string, model::FrameId> frames_;
  std::map<model::StackNode, model::StackId> stacks_;
  std::vector<model::HeapAlloc> heap_allocs_;
  std::vector<model::HeapFree> heap_frees_;
  std::vector<model::Sample> samples_;
  std::vector<model::Wait> waits_;
  std::vector<std::vector<model::Point>> points_;
};

}  // namespace assay::analysis
