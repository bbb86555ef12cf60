#include "run/selection/chosen_threads.h"

#include <algorithm>
#include <unordered_map>

#include "base/pattern.h"

namespace assay::run {
namespace {

std::string_view last_part(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

template <class T>
bool in(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

class ThreadMatch {
 public:
  static Result<ThreadMatch> make(const Selection& selection, const Contents& run) {
    ThreadMatch match(selection, run);
    if (!selection.thread.empty()) {
      auto compiled = Pattern::compile(selection.thread);
      if (!compiled) return std::unexpected(compiled.error());
      match.pattern_ = std::move(*compiled);
    }
    if (!selection.processes.empty()) match.labels_ = process_labels(run);
    if (!selection.threads) return match;
    match.numbers_.resize(run.threads.size());
    for (model::ThreadId id : *selection.threads) {
      if (id.value >= run.threads.size()) {
        return fail("parameter threads: the run has no number {}", id.value);
      }
      match.numbers_[id.value] = true;
    }
    return match;
  }

  bool fits(size_t number) const {
    const model::Thread& thread = run_.threads[number];
    uint32_t process = thread.process.value;
    pid_t pid = process < run_.processes.size() ? run_.processes[process].pid : 0;
    return in(selection_.pids, pid) && in(selection_.tids, thread.tid) &&
           in(selection_.pools, thread.pool.empty() ? thread.name : thread.pool) &&
           fits_process(process) && fits_name(thread) && (!selection_.threads || numbers_[number]);
  }

 private:
  ThreadMatch(const Selection& selection, const Contents& run) : selection_(selection), run_(run) {}

  bool fits_process(uint32_t number) const {
    bool any = selection_.processes.empty() && selection_.process_ids.empty();
    for (model::ProcessId id : selection_.process_ids) any = any || id.value == number;
    if (number >= run_.processes.size()) return any;
    const model::Process& process = run_.processes[number];
    for (const std::string& asked : selection_.processes) {
      any = any || asked == std::to_string(process.pid) || asked == process.role ||
            asked == process.comm || asked == last_part(process.exe) || asked == labels_[number];
    }
    return any;
  }

  bool fits_name(const model::Thread& thread) const {
    return !pattern_ || pattern_->found_in(thread.name) ||
           selection_.thread == std::to_string(thread.tid);
  }

  const Selection& selection_;
  const Contents& run_;
  std::optional<Pattern> pattern_;
  std::vector<std::string> labels_;
  std::vector<bool> numbers_;
};

}  // namespace

Result<std::vector<bool>> choose_threads(const Selection& selection, const Contents& run) {
  auto match = ThreadMatch::make(selection, run);
  if (!match) return std::unexpected(match.error());
  std::vector<bool> chosen(run.threads.size());
  bool any = false;
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = match->fits(i);
    any = any || chosen[i];
  }
  if (!any && selection.names_threads()) {
    return fail_with_remedy(
        fmt::format("the run has no thread that matches {}", describe(selection)),
        "assay sql RUN \"SELECT * FROM thread_name\" lists its threads");
  }
  return chosen;
}

model::TimeSpan chosen_time(const Selection& selection, const Contents& run) {
  model::TimeSpan window{run.info.window_begin_ns, run.info.window_end_ns};
  int64_t length = window.ns();
  int64_t from = std::clamp<int64_t>(selection.from_ns.value_or(0), 0, length);
  int64_t to = std::clamp<int64_t>(selection.to_ns.value_or(length), 0, length);
  return {window.begin_ns + from, window.begin_ns + to};
}

std::vector<std::string> process_labels(const Contents& run) {
  std::unordered_map<std::string, int> of_name, of_role;
  auto with_role = [](const model::Process& p) {
    return fmt::format("{} [{}]", model::process_name(p), p.role);
  };
  for (const model::Process& process : run.processes) {
    ++of_name[std::string(model::process_name(process))];
    ++of_role[with_role(process)];
  }
  std::vector<std::string> labels;
  for (const model::Process& process : run.processes) {
    std::string label(model::process_name(process));
    if (of_name[label] > 1) {
      bool told_by_role = !process.role.empty() && of_role[with_role(process)] == 1;
      label = told_by_role ? with_role(process) : fmt::format("{} {}", label, process.pid);
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace assay::run
