// answer_suspects(): a hypothesis, given as a pattern of function names, meets the numbers.
#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "analysis/rules/detect.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kMatters = 0.10;  // of what limits throughput

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Time of the stacks that hold one of the functions, each once, and the heaviest of them.
struct Sum {
  int64_t ns = 0, heaviest_ns = 0;
  uint64_t count = 0;
  model::StackId heaviest;
  void add(int64_t time_ns, uint64_t times, model::StackId stack) {
    ns += time_ns;
    count += times;
    if (time_ns > heaviest_ns) heaviest_ns = time_ns, heaviest = stack;
  }
};

class OnPath {
 public:
  OnPath(const CallTree& tree, const std::vector<uint8_t>& wanted) : has_(tree.paths().size()) {
    for (PathIndex path = 1; path < has_.size(); ++path) {
      has_[path] = has_[tree.paths()[path].parent] || wanted[tree.paths()[path].function];
    }
  }
  bool operator[](PathIndex path) const { return has_[path]; }

 private:
  std::vector<uint8_t> has_;
};

SuspectAnswer answer(const std::string& pattern, const std::vector<uint8_t>& wanted,
                     size_t functions, const DetectorInput& input, VerdictKind verdict) {
  SuspectAnswer result;
  result.pattern = pattern;
  if (functions == 0) {
    result.answer = "not measurable";
    result.text =
        "No function of the run has such a name: it never ran or waited when looked at, was "
        "inlined without debug information, or is called otherwise.";
    return result;
  }
  OnPath on_path(input.tree, wanted);
  Sum cpu, blocked;
  for (const PathWeight& weight : input.cpu) {
    if (on_path[weight.path]) cpu.add(weight.ns, weight.samples, weight.heaviest);
  }
  for (const WaitWeight& weight : input.waits) {
    if (!weight.idle && on_path[weight.path]) blocked.add(weight.ns, weight.count, weight.heaviest);
  }
  const OnCpuProfile& on_cpu = input.run.on_cpu;
  const VerdictKindRow& limit = describe(verdict);
  Estimate share = wilson(ratio(cpu.ns, on_cpu.time_ns), on_cpu.effective_samples);
  result.cpu_share = share.share;
  result.blocked_share = std::min(1.0, ratio(blocked.ns, input.serving_busy_ns));
  std::string figures =
      fmt::format("{} of CPU time ({:.1f}–{:.1f} %) and {} of busy time blocked, in {} function{}",
                  format_percent(share.share), share.low * 100, share.high * 100,
                  format_percent(result.blocked_share), functions, functions == 1 ? "" : "s");
  bool limit_is_waiting = limit.limit == Limit::waiting;
  if (verdict == VerdictKind::withheld) {
    result.answer = "not measurable";
    result.text = figures + "; the verdict is withheld, so what limits throughput is not known.";
  } else if (limit.limit == Limit::load) {
    result.answer = "refuted";
    result.text = figures + "; nothing in the server limits throughput at this load.";
  } else if (limit_is_waiting ? result.blocked_share >= kMatters : share.low >= kMatters) {
    result.answer = "confirmed";
    result.text = figures + fmt::format("; the verdict is {}.", limit.id);
  } else {
    result.answer = "refuted";
    result.text =
        figures + fmt::format("; the verdict is {}, which this does not explain.", limit.id);
  }
  for (const Sum* sum : {&cpu, &blocked}) {
    if (sum->count == 0) continue;
    result.evidence.push_back(
        {fmt::format("{} {} ({})", format_count(sum->count), sum == &cpu ? "samples" : "waits",
                     format_duration(sum->ns)),
         input.tree.texts_of(sum->heaviest),
         {},
         0});
  }
  return result;
}

}  // namespace

Result<std::vector<SuspectAnswer>> answer_suspects(const std::vector<std::string>& patterns,
                                                   const DetectorInput& input,
                                                   VerdictKind verdict) {
  std::vector<SuspectAnswer> answers;
  for (const std::string& pattern : patterns) {
    std::vector<uint8_t> wanted(input.tree.functions().size());
    size_t functions = 0;
    try {
      std::regex expression(pattern, std::regex::ECMAScript | std::regex::optimize);
      for (FunctionIndex f = 0; f < wanted.size(); ++f) {
        // Names of this length come from templates; std::regex recurses once per character.
        std::string_view name = input.tree.functions()[f].name.substr(0, 2000);
        wanted[f] = std::regex_search(name.begin(), name.end(), expression);
        functions += wanted[f];
      }
    } catch (const std::regex_error& error) {
      return fail("--suspect '{}' is not a regular expression: {}", pattern, error.what());
    }
    answers.push_back(answer(pattern, wanted, functions, input, verdict));
  }
  return answers;
}

}  // namespace assay::analysis
