#include "session/import/import_perf_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/code/anonymous_module.h"

namespace assay::session {
namespace {

using formats::PerfEvent;
using formats::PerfHead;
using formats::PerfSample;
using model::StackEnd;

TimeNs begin_of(const formats::PerfData& data) {
  return data.first_time() == INT64_MAX ? 0 : data.first_time();
}

}  // namespace

PerfDataImport::PerfDataImport(const formats::PerfData& data, const formats::ReadOptions& options,
                               formats::RunBuilder& builder, ImportNames& names,
                               const std::string& cache_dir)
    : data_(data),
      options_(options),
      builder_(builder),
      namer_(names),
      unwinder_(unwind::Unwinder::create(cache_dir)),
      off_cpu_(begin_of(data), builder.marker(StackEnd::not_sampled),
               [this](const model::Wait& wait) {
                 if (wait.duration_ns > 0) builder_.wait(wait);
               }) {}

Result<void> PerfDataImport::run() {
  choose_event();
  if (data_.has_switches()) builder_.set_lives_whole();
  if (auto done = data_.visit(*this); !done) return done;
  if (data_.has_switches()) {
    off_cpu_.finish(data_.last_time() + 1, [](model::ThreadId) { return false; });
  }
  add_notes();
  return {};
}

// Time comes from one event: a clock if there is one, else the first that is no tracepoint.
void PerfDataImport::choose_event() {
  const std::vector<PerfEvent>& events = data_.events();
  auto best = [&](const auto& fits) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].samples > 0 && fits(events[i])) {
        event_ = i;
        return true;
      }
    }
    return false;
  };
  bool found = best([](const PerfEvent& e) { return e.is_clock(); }) ||
               best([](const PerfEvent& e) { return e.name.starts_with("cycles"); }) ||
               best([](const PerfEvent& e) { return e.attr.type != PERF_TYPE_TRACEPOINT; }) ||
               best([](const PerfEvent&) { return true; });
  for (const PerfEvent& event : events) {
    is_switch_.push_back(event.name.starts_with("sched:sched_switch"));
  }
  if (!found) return;
  const PerfEvent& event = events[event_];
  bool frequency = event.attr.freq != 0 && event.attr.sample_freq > 0;
  double period_ns = frequency ? 1e9 / static_cast<double>(event.attr.sample_freq) : 0;
  if (options_.period_ns > 0) period_ns = static_cast<double>(options_.period_ns);
  if (event.is_clock()) {
    period_ns = event.period_sum / static_cast<double>(event.samples);
  } else if (period_ns > 0 && event.period_sum > 0) {
    // Samples keep their proportions, and together stand for the time that the rate promises.
    scale_ = period_ns * static_cast<double>(event.samples) / event.period_sum;
  }
  builder_.set_event(event.name, static_cast<int64_t>(period_ns));
  if (!event.is_clock() && period_ns <= 0) {
    builder_.set_unit(event.name);
    builder_.note("unit",
                  fmt::format("the imported samples count {}, not time: where this run says ns, "
                              "read {}",
                              event.name, event.name),
                  "assay import --freq HZ says how long a sample is");
  }
}

int64_t PerfDataImport::weight(const PerfSample& sample) const {
  double ns = static_cast<double>(sample.period) * scale_;
  return std::clamp<int64_t>(static_cast<int64_t>(std::min(ns + 0.5, 9e18)), 1,
                             formats::kMostNsOfOne);
}

model::ThreadId PerfDataImport::thread(const PerfHead& head) {
  auto [it, added] = threads_.try_emplace(head.tid);
  if (!added) return it->second;
  formats::Who who;
  who.pid = head.pid;
  who.tid = head.tid;
  auto name = names_.find(head.tid), process = names_.find(head.pid);
  if (name != names_.end()) who.thread = name->second;
  who.exe = processes_[head.pid].exe;
  if (process != names_.end()) who.process = process->second;
  if (who.process.empty() && who.exe.empty()) who.process = fmt::format("pid {}", head.pid);
  it->second = builder_.thread(who);
  if (data_.has_switches()) off_cpu_.existing_thread(it->second, begin_of(data_));
  return it->second;
}

void PerfDataImport::named(const PerfHead& head, std::string_view name, bool exec) {
  names_[head.tid] = std::string(formats::stored(name));
  if (exec) {
    processes_[head.pid] = {};  // the same addresses are other code from here on
  }
  auto it = threads_.find(head.tid);
  if (it == threads_.end()) return;
  builder_.rename_thread(it->second, names_[head.tid]);
  if (head.tid == head.pid) builder_.rename_process(it->second, names_[head.tid], "");
}

void PerfDataImport::forked(const PerfHead& head, pid_t parent_pid) {
  if (head.pid != parent_pid && processes_.contains(parent_pid)) {
    Process copy = processes_[parent_pid];
    copy.space_number = 0;
    processes_[head.pid] = std::move(copy);
  }
  if (!names_.contains(head.tid) && names_.contains(parent_pid)) {
    std::string inherited = names_[parent_pid];
    names_[head.tid] = std::move(inherited);
  }
  if (head.time == 0 || !data_.has_switches() || head.pid <= 0) return;
  off_cpu_.born(thread(head), head.time);
}

void PerfDataImport::exited(const PerfHead& head) {
  auto it = threads_.find(head.tid);
  if (it == threads_.end()) return;
  if (data_.has_switches()) off_cpu_.exited(it->second, head.time);
  unwinder_->forget_thread(head.tid);
  trails_.forget(head.tid);
  threads_.erase(it);  // the number may come back as another thread's
}

void PerfDataImport::mapped(const PerfHead& head, const formats::PerfMapping& record) {
  constexpr std::string_view kKernel = "[kernel.kallsyms]";
  if (head.pid < 0 && record.path.starts_with(kKernel)) {
    namer_.set_kernel_place({std::string(record.path.substr(kKernel.size())), record.file_offset});
  }
  if (head.pid < 0 || !record.executable || record.length == 0 ||
      record.start > UINT64_MAX - record.length) {
    return;
  }
  std::string path(formats::stored(record.path));
  std::string build_id = record.build_id;
  if (auto it = data_.build_ids().find(path); build_id.empty() && it != data_.build_ids().end()) {
    build_id = it->second;
  }
  if (path.ends_with(" (deleted)")) path.resize(path.size() - 10);
  model::Mapping mapping{record.start, record.start + record.length, record.file_offset, {}};
  bool file = path.starts_with('/') && !path.starts_with("//anon");
  if (path == "[vdso]") {
    mapping.module = builder_.module(model::ModuleKind::vdso, path, build_id);
  } else if (file) {
    mapping.module = builder_.module(model::ModuleKind::elf, path, build_id);
  } else {
    mapping.module =
        builder_.module(model::ModuleKind::anonymous, model::anonymous_module_path(head.pid), "");
  }
  Process& process = processes_[head.pid];
  process.space.map(mapping);
  process.space_number = 0;
  if (process.exe.empty() && file) {
    process.exe = path;
    if (auto it = threads_.find(head.pid); it != threads_.end()) {
      builder_.rename_process(it->second, "", path);
    }
  }
  unwinder_->prepare(0, mapping, builder_.modules()[mapping.module]);
  if (auto it = threads_.find(head.pid); it != threads_.end()) {
    builder_.mapping(it->second, mapping, head.time);
  }
}

void PerfDataImport::switched(const PerfHead& head, bool out, bool preempted) {
  if (head.tid <= 0) return;  // the idle task
  model::ThreadId id = thread(head);
  if (out) {
    off_cpu_.switched_out(id, head.time, preempted);
  } else {
    off_cpu_.switched_in(id, head.time);
  }
}

void PerfDataImport::lost(const PerfHead& head, uint64_t count) {
  builder_.loss({model::LossKind::ring_records, static_cast<int32_t>(head.cpu), head.time, count});
}

void PerfDataImport::sample(const PerfHead& head, const PerfSample& sample) {
  if (head.event < is_switch_.size() && is_switch_[head.event]) {
    if (head.tid > 0 && data_.has_switches()) {
      off_cpu_.stack_at_switch(thread(head), head.time, {stack(head, sample)});
    }
    return;
  }
  if (head.event != event_) {
    ++left_out_;
    return;
  }
  if (head.pid < 0) return;
  model::ThreadId id = thread(head);
  if (data_.has_switches()) off_cpu_.running_sample(id, head.time);
  builder_.sample(
      {head.time, id, stack(head, sample), weight(sample), static_cast<uint16_t>(head.cpu)});
  if (builder_.samples() < next_naming_) return;
  namer_.name_ahead(builder_);
  next_naming_ *= 2;
}

model::StackId PerfDataImport::stack(const PerfHead& head, const PerfSample& sample) {
  has_stacks_ = has_stacks_ || sample.has_chain || !sample.stack.empty();
  if (!sample.has_chain && sample.stack.empty()) {
    model::StackId root = marker(StackEnd::not_sampled);
    if (sample.user_mode) return push(root, head.pid, sample.ip);
    return push_kernel(root, sample.ip);
  }
  StackEnd end = find_user_addresses(head, sample);
  evidence::StackTrails::Stack stack;
  stack.user_words = words_.size();
  stack.space = space_number(head.pid);
  if (end != StackEnd::complete) stack.root = marker(end);
  for (size_t i = std::min(sample.kernel_chain.size(), formats::kDeepestStack); i-- > 0;) {
    words_.push_back(sample.kernel_chain[i] - (i > 0 ? 1 : 0));
  }
  stack.words = words_;
  return trails_.find(
      head.tid, stack, [&](model::StackId parent, uint64_t address, bool is_kernel) {
        return is_kernel ? push_kernel(parent, address) : push(parent, head.pid, address);
      });
}

// Fills words_ with them, root first: none for a kernel thread.
StackEnd PerfDataImport::find_user_addresses(const PerfHead& head, const PerfSample& sample) {
  words_.clear();
  if (!sample.stack.empty() && sample.registers.known != 0) {
    unwind::RawStack raw;
    raw.pid = head.pid;
    raw.tid = head.tid;
    raw.registers = sample.registers;
    raw.copy = sample.stack;
    raw.fp_chain = sample.user_chain;
    const unwind::UserStack& user = unwinder_->unwind(raw, processes_[head.pid].space);
    for (size_t i = user.frames.size(); i-- > 0;) {
      words_.push_back(user.frames[i].pc - (user.frames[i].is_return_address ? 1 : 0));
    }
    return user.end;
  }
  if (sample.user_chain.empty()) return StackEnd::complete;
  for (size_t i = std::min(sample.user_chain.size(), formats::kDeepestStack); i-- > 0;) {
    words_.push_back(sample.user_chain[i] - (i > 0 ? 1 : 0));
  }
  return StackEnd::frame_pointers;
}

uint32_t PerfDataImport::space_number(pid_t pid) {
  uint32_t& number = processes_[pid].space_number;
  if (number == 0) number = ++last_space_number_;
  return number;
}

model::StackId PerfDataImport::marker(StackEnd end) {
  model::StackId& known = markers_[static_cast<size_t>(end)];
  if (known.value == 0) known = builder_.marker(end);
  return known;
}

model::StackId PerfDataImport::push(model::StackId parent, pid_t pid, uint64_t address) {
  const model::Mapping* mapping = processes_[pid].space.find(address);
  if (mapping != nullptr) {
    bool relative = builder_.modules()[mapping->module].kind != model::ModuleKind::anonymous;
    uint64_t at = relative ? mapping->to_module_address(address) : address;
    return builder_.push(parent, builder_.frame({mapping->module, at}));
  }
  model::ModuleId unknown =
      builder_.module(model::ModuleKind::anonymous, model::anonymous_module_path(pid), "");
  return builder_.push(parent, builder_.frame({unknown, address}));
}

model::StackId PerfDataImport::push_kernel(model::StackId parent, uint64_t address) {
  if (!kernel_) kernel_ = builder_.module(model::ModuleKind::kernel, "[kernel]", "");
  return builder_.push(parent, builder_.frame({*kernel_, address}));
}

void PerfDataImport::add_notes() {
  for (const auto& [key, value] : data_.facts()) builder_.fact(key, value);
  if (left_out_ > 0) {
    builder_.note("events", fmt::format("{} samples of other events than {} were left out",
                                        left_out_, data_.events()[event_].name));
  }
  if (data_.was_cut()) {
    builder_.note("end", "perf record was cut off: the file holds what was written until then");
  }
  if (!has_stacks_ && builder_.samples() > 0) {
    builder_.note("stacks", "the samples came without stacks: only the sampled functions are known",
                  "perf record --call-graph dwarf, or assay record");
  }
  if (!data_.has_switches() && builder_.samples() > 0) {
    builder_.note("waits",
                  "perf recorded no context switches: nothing is known of time off the CPU",
                  "perf record --switch-events, or assay record");
  }
}

}  // namespace assay::session
