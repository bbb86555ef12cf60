// next_step(): the experiment that would tell most, by verdict, with the target and the load of
// this run.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"

namespace assay::analysis {
namespace {

std::string target_of(const Measured& run) {
  if (is_imported(run.run_kind)) return "--port PORT";  // its target is the file that was imported
  return run.info.target.empty() ? "TARGET" : run.info.target;
}

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What the run was made with is asked for again: a comparison needs the same load.
std::string options_of(const Measured& run) {
  const Workload& load = run.workload;
  std::string options;
  if (load.present && !load.what.empty()) options += " --load " + shell_word(load.what);
  if (run.heap.present && !is_heap_alone(run.run_kind)) options += " --heap";
  return options;
}

// How long an option with its value is that a sweep sets itself; 0 when the text begins otherwise.
size_t set_by_sweep(std::string_view text) {
  for (std::string_view option : {" -c", " --connections", " --rate"}) {
    size_t value = option.size() + 1;
    bool given = text.starts_with(option) && text.size() > value &&
                 (text[option.size()] == ' ' || text[option.size()] == '=') && text[value] != ' ';
    if (given) return std::min(text.find(' ', value), text.size());
  }
  return 0;
}

// A sweep sets the connections and the rate itself, and can do so of a URL only.
std::string load_of_sweep(const Measured& run) {
  const Workload& load = run.workload;
  if (load.kind != "url" || load.what.empty()) return "URL";
  std::string kept;
  for (std::string_view rest = load.what; !rest.empty();) {
    size_t skipped = set_by_sweep(rest);
    if (skipped == 0) kept += rest[0];
    rest.remove_prefix(std::max<size_t>(1, skipped));
  }
  return shell_word(kept);
}

// A command to launch takes everything behind it, so it comes last: "record --for 30s -- ./server".
std::string with_target(std::string text, const std::string& target, const std::string& options) {
  size_t at = text.find("{}");
  if (at == text.npos) return text;
  if (!target.starts_with("-- ")) return text.replace(at, 2, target + options);
  text.insert(std::min(text.find(" && ", at), text.size()), " " + target);
  // The options bring the space that stands before them.
  return text.replace(at - 1, 3, options);
}

std::string filled(std::string_view command, const Measured& run) {
  std::string text(command);
  if (size_t at = text.find(" RUN"); at != text.npos && !run.run_path.empty()) {
    text.replace(at, 4, " " + run.run_path);
  }
  if (!text.starts_with("assay sweep")) {
    bool asks_for_load = text.find("--load URL") != text.npos;  // another than it had
    return with_target(text, target_of(run), asks_for_load ? "" : options_of(run));
  }
  if (size_t at = text.find("URL"); at != text.npos) text.replace(at, 3, load_of_sweep(run));
  return with_target(text, target_of(run), "");
}

}  // namespace

NextStep next_step(const Measured& run, VerdictKind kind,
                   const std::vector<std::string>& remedies) {
  const VerdictKindRow& row = describe(kind);
  NextStep step{std::string(row.next_step), filled(row.next_command, run)};
  if (kind != VerdictKind::withheld || remedies.empty()) return step;
  bool by_recording = is_imported(run.run_kind) || is_heap_alone(run.run_kind);
  step.words = by_recording
                   ? "Record the server itself: a run holds both, time on the CPU and waits."
                   : remedies.front() + ", then record again.";
  return step;
}

}  // namespace assay::analysis
