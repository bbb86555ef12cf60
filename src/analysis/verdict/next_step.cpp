// add_next_step(): the experiment that would tell most, by verdict.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/verdict/verdict.h"

namespace assay::analysis {
namespace {

std::string target_of(const Report& report) {
  if (is_imported(report)) return "--port PORT";  // its target is the file that was imported
  return report.info.target.empty() ? "TARGET" : report.info.target;
}

struct Step {
  const char* kind;
  const char* words;
  const char* command;  // {} is the target
};

constexpr Step kSteps[]{
    {"cpu", "Make the first finding cheaper, then record again under the same load and compare.",
     "assay record {} --for 30s -o after.assay && assay diff after.assay --vs RUN"},
    {"allocator", "Try another allocator without changing code, and compare.",
     "LD_PRELOAD=libtcmalloc_minimal.so.4 SERVER…, then assay record {} -o after.assay"},
    {"spin", "Replace the spinning by a blocking wait, or give it fewer threads, and compare.",
     "assay record {} --for 30s -o after.assay"},
    {"network-stack", "Send and receive more per system call, and compare CPU per request.",
     "assay record {} --for 30s -o after.assay"},
    {"serial-stage",
     "Run the stage on a second thread, or halve its work; throughput should follow.",
     "assay record {} --for 30s -o after.assay"},
    {"lock", "Shorten what is done under the lock, or split it, and compare.",
     "assay record {} --for 30s -o after.assay"},
    {"disk",
     "Take the write off the request path, or put the directory on a memory file system once.",
     "assay record {} --for 30s -o after.assay"},
    {"network", "Look whether the client reads as fast as it is sent to.",
     "ss -tin state established"},
    {"downstream", "Record the server that it waits for during the same load.",
     "assay record --port DOWNSTREAM_PORT --for 30s"},
    {"timer", "Take the sleep out once and measure throughput.",
     "assay record {} --for 30s -o after.assay"},
    {"scheduler", "Give it the CPUs it lacks, or move the neighbour, and compare.",
     "assay record {} --for 30s -o after.assay"},
    {"throttled", "Raise the CPU quota once and measure throughput.",
     "assay record {} --for 30s -o after.assay"},
    {"concurrency-limited", "Offer more requests at once, until throughput stops growing.",
     "assay sweep {} --load URL --concurrency 1,2,4,8,16,32"},
    {"underloaded", "Record it again under the load that you care about.",
     "assay record {} --load URL --for 30s"},
    {"mixed", "Vary the load: what grows with it is the limit, what shrinks is spare.",
     "assay sweep {} --load URL --concurrency 1,2,4,8,16"},
};

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What the run was made with is asked for again: a comparison needs the same load.
std::string options_of(const Report& report) {
  const Workload& load = report.workload;
  std::string options;
  if (load.present && !load.what.empty()) options += " --load " + shell_word(load.what);
  if (report.heap.present && !report.heap_alone) options += " --heap";
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
std::string load_of_sweep(const Report& report) {
  const Workload& load = report.workload;
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

std::string filled(std::string_view command, const Report& report) {
  std::string text(command);
  if (size_t at = text.find(" RUN"); at != text.npos && !report.run_path.empty()) {
    text.replace(at, 4, " " + report.run_path);
  }
  if (!text.starts_with("assay sweep")) {
    bool asks_for_load = text.find("--load URL") != text.npos;  // another than it had
    return with_target(text, target_of(report), asks_for_load ? "" : options_of(report));
  }
  if (size_t at = text.find("URL"); at != text.npos) text.replace(at, 3, load_of_sweep(report));
  return with_target(text, target_of(report), "");
}

}  // namespace

void add_next_step(const Report& report, Verdict& verdict) {
  if (verdict.kind == "withheld") {
    bool by_recording = is_imported(report) || report.heap_alone;
    verdict.next_step = verdict.remedies.empty() ? "Record again."
                        : by_recording           ? "Record the server itself: a run holds both, "
                                                   "time on the CPU and waits."
                                       : verdict.remedies.front() + ", then record again.";
    verdict.next_command = filled("assay record {} --for 30s", report);
    return;
  }
  for (const Step& step : kSteps) {
    if (verdict.kind != step.kind) continue;
    verdict.next_step = step.words;
    verdict.next_command = filled(step.command, report);
  }
}

}  // namespace assay::analysis
