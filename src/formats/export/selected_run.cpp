#include "formats/export/selected_run.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/ranges.h>

namespace assay::formats {
namespace {

std::string_view last_part(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool is_process(const model::Process& process, const std::string& label, const std::string& asked) {
  return asked == std::to_string(process.pid) || asked == process.role || asked == process.comm ||
         asked == last_part(process.exe) || asked == label;
}

}  // namespace

SelectedRun::SelectedRun(const run::Reader& reader)
    : reader_(reader), tree_(reader.contents()), classifier_(tree_) {
  nobody_.comm = "unknown";
  label_processes();
}

Result<std::unique_ptr<SelectedRun>> SelectedRun::make(const run::Reader& reader,
                                                       const Selection& selection) {
  std::unique_ptr<SelectedRun> run(new SelectedRun(reader));
  if (auto done = run->choose_threads(selection); !done) return std::unexpected(done.error());
  if (auto done = run->choose_time(selection); !done) return std::unexpected(done.error());
  if (auto done = run->choose_paths(selection); !done) return std::unexpected(done.error());
  if (auto done = run->classifier_.learn(reader); !done) return std::unexpected(done.error());
  if (auto done = run->choose_waits(selection); !done) return std::unexpected(done.error());
  return run;
}

const model::Process& SelectedRun::process_of(model::ThreadId id) const {
  uint32_t process = thread(id).process.value;
  return process < contents().processes.size() ? contents().processes[process] : nobody_;
}

void SelectedRun::label_processes() {
  const std::vector<model::Process>& processes = contents().processes;
  std::unordered_map<std::string, int> of_name, of_role;
  auto with_role = [](const model::Process& p) {
    return fmt::format("{} [{}]", model::process_name(p), p.role);
  };
  for (const model::Process& process : processes) {
    ++of_name[std::string(model::process_name(process))];
    ++of_role[with_role(process)];
  }
  for (const model::Process& process : processes) {
    std::string label(model::process_name(process));
    if (of_name[label] > 1) {
      bool told_by_role = !process.role.empty() && of_role[with_role(process)] == 1;
      label = told_by_role ? with_role(process) : fmt::format("{} {}", label, process.pid);
    }
    labels_.push_back(std::move(label));
  }
}

Result<void> SelectedRun::choose_threads(const Selection& selection) {
  std::optional<Pattern> pattern;
  if (!selection.thread.empty()) {
    auto compiled = Pattern::compile(selection.thread);
    if (!compiled) return std::unexpected(compiled.error());
    pattern = std::move(*compiled);
  }
  bool any = false;
  for (const model::Thread& candidate : contents().threads) {
    bool wanted = selection.processes.empty() && selection.process_ids.empty();
    uint32_t process = candidate.process.value;
    for (model::ProcessId id : selection.process_ids) wanted = wanted || id.value == process;
    for (const std::string& asked : selection.processes) {
      wanted = wanted || (process < labels_.size() &&
                          is_process(contents().processes[process], labels_[process], asked));
    }
    if (pattern) {
      wanted = wanted && (pattern->found_in(candidate.name) ||
                          selection.thread == std::to_string(candidate.tid));
    }
    threads_.push_back(wanted);
    any = any || wanted;
  }
  bool all = selection.processes.empty() && selection.thread.empty();
  if (!any && !all) {
    return fail_with_remedy(fmt::format("the run has no thread that matches {}{}{}",
                                        fmt::join(selection.processes, ", "),
                                        selection.processes.empty() ? "" : " ", selection.thread),
                            "assay sql RUN \"SELECT * FROM process\" lists its processes");
  }
  return {};
}

Result<void> SelectedRun::choose_time(const Selection& selection) {
  const model::RunInfo& info = contents().info;
  int64_t length = std::max<int64_t>(0, info.window_end_ns - info.window_begin_ns);
  int64_t from = std::clamp<int64_t>(selection.from_ns.value_or(0), 0, length);
  int64_t to = std::clamp<int64_t>(selection.to_ns.value_or(length), 0, length);
  if (from >= to && (selection.from_ns || selection.to_ns)) {
    return fail("--from and --to leave nothing of the run's {:.3f} s",
                static_cast<double>(length) / 1e9);
  }
  begin_ns_ = info.window_begin_ns + from;
  end_ns_ = info.window_begin_ns + to;
  return {};
}

Result<void> SelectedRun::choose_paths(const Selection& selection) {
  if (selection.focus.empty() && selection.ignore.empty()) return {};
  auto matches = [&](const std::string& expression) -> Result<std::vector<bool>> {
    std::vector<bool> found(tree_.functions().size());
    if (expression.empty()) return found;
    auto pattern = Pattern::compile(expression);
    if (!pattern) return std::unexpected(pattern.error());
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = pattern->found_in(tree_.functions()[i].name);
    }
    return found;
  };
  auto focus = matches(selection.focus);
  if (!focus) return std::unexpected(focus.error());
  auto ignore = matches(selection.ignore);
  if (!ignore) return std::unexpected(ignore.error());
  size_t count = tree_.paths().size();
  std::vector<bool> focused(count), ignored(count);
  focused[0] = selection.focus.empty();
  paths_.assign(count, false);
  paths_[0] = focused[0];
  for (size_t i = 1; i < count; ++i) {  // a parent precedes its children
    const analysis::CallTree::Path& path = tree_.paths()[i];
    focused[i] = focused[path.parent] || (*focus)[path.function];
    ignored[i] = ignored[path.parent] || (*ignore)[path.function];
    paths_[i] = focused[i] && !ignored[i];
  }
  return {};
}

Result<void> SelectedRun::choose_waits(const Selection& selection) {
  if (!selection.without_idle) return {};
  idle_ = std::make_unique<analysis::RunRules>(tree_, contents());
  run::TimeRange window{contents().info.window_begin_ns, contents().info.window_end_ns};
  auto status = reader_.for_each_wait(
      window, [&](const model::Wait& wait) { idle_->observe(wait, classifier_.kind_of(wait)); });
  if (!status) return status;
  status =
      reader_.for_each_sample(window, [&](const model::Sample& sample) { idle_->observe(sample); });
  if (status) idle_->decide();
  return status;
}

Result<void> SelectedRun::for_each_sample(const std::function<void(const model::Sample&)>& visit) {
  return reader_.for_each_sample({begin_ns_, end_ns_}, [&](const model::Sample& sample) {
    if (has(sample.thread) && has_path(sample.stack)) visit(sample);
  });
}

Result<void> SelectedRun::for_each_wait(const std::function<void(const SelectedWait&)>& visit) {
  return reader_.for_each_wait({begin_ns_, end_ns_}, [&](const model::Wait& wait) {
    if (!has(wait.thread) || !has_path(wait.stack)) return;
    TimeNs end = wait.start + std::max<int64_t>(0, wait.duration_ns);
    TimeNs runnable_at = end - std::clamp<int64_t>(wait.runqueue_ns, 0, end - wait.start);
    SelectedWait selected{wait};
    selected.begin_ns = std::clamp(wait.start, begin_ns_, end_ns_);
    selected.blocked_ns = std::clamp(runnable_at, begin_ns_, end_ns_) - selected.begin_ns;
    selected.runqueue_ns =
        std::clamp(end, begin_ns_, end_ns_) - std::clamp(runnable_at, begin_ns_, end_ns_);
    selected.kind = classifier_.kind_of(wait);
    if (idle_ != nullptr && idle_->idle(wait, selected.kind)) {
      selected.begin_ns += selected.blocked_ns;
      selected.blocked_ns = 0;
    }
    if (selected.blocked_ns <= 0 && selected.runqueue_ns <= 0) return;
    visit(selected);
  });
}

Result<void> SelectedRun::for_each_alloc(const std::function<void(const SelectedAlloc&)>& visit) {
  if (!contents().has_heap) return {};
  std::unordered_set<uint64_t> freed;
  auto done = reader_.for_each_heap_free({begin_ns_, end_ns_},
                                         [&](const model::HeapFree& row) { freed.insert(row.id); });
  if (!done) return done;
  return reader_.for_each_heap_alloc({begin_ns_, end_ns_}, [&](const model::HeapAlloc& alloc) {
    if (has(alloc.thread) && has_path(alloc.stack)) visit({alloc, !freed.contains(alloc.id)});
  });
}

Result<void> SelectedRun::for_each_heap_sum(
    const std::function<void(const model::HeapSum&)>& visit) {
  const model::RunInfo& info = contents().info;
  if (contents().heap_sums.empty()) return {};
  if (begin_ns_ != info.window_begin_ns || end_ns_ < info.window_end_ns)
    return fail_with_remedy("the imported heap profile has no times", "leave --from and --to out");
  for (const model::HeapSum& sum : contents().heap_sums) {
    if (has(sum.thread) && has_path(sum.stack)) visit(sum);
  }
  return {};
}

}  // namespace assay::formats
