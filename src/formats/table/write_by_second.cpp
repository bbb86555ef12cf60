#include "formats/table/write_by_second.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "formats/text.h"

namespace assay::formats {
namespace {

class BySecond {
 public:
  explicit BySecond(const SelectedRun& run) : run_(run) {}

  void add(TimeNs time, model::StackId stack, int64_t value) {
    if (value > 0)
      sums_[{(time - run_.begin_ns()) / kNsPerSecond, run_.tree().path_of(stack)}] += value;
  }
  void add_span(TimeNs begin, int64_t length, model::StackId stack) {
    for (TimeNs end = begin + length; begin < end;) {
      TimeNs second_end = begin + kNsPerSecond - (begin - run_.begin_ns()) % kNsPerSecond;
      TimeNs until = std::min(end, second_end);
      add(begin, stack, until - begin);
      begin = until;
    }
  }
  void write(Output& output) {
    output.write("second\tstack\tvalue\n");
    for (const auto& [key, value] : sums_) {
      output.write(fmt::format("{}\t{}\t{}\n", key.first, text_of(key.second), value));
    }
  }

 private:
  const std::string& text_of(analysis::PathIndex path) {
    auto [it, added] = texts_.try_emplace(path);
    if (!added) return it->second;
    std::vector<std::string> names;
    for (; path != 0; path = run_.tree().paths()[path].parent) {
      names.push_back(
          folded_text(run_.tree().functions()[run_.tree().paths()[path].function].name));
    }
    for (size_t i = names.size(); i-- > 0;) it->second += names[i] + (i > 0 ? ";" : "");
    if (it->second.empty()) it->second = "[no stack]";
    return it->second;
  }

  const SelectedRun& run_;
  std::map<std::pair<int64_t, analysis::PathIndex>, int64_t> sums_;
  std::unordered_map<analysis::PathIndex, std::string> texts_;
};

}  // namespace

Result<void> write_by_second(SelectedRun& run, Metric metric, Output& output) {
  BySecond seconds(run);
  if (metric == Metric::cpu || metric == Metric::samples || metric == Metric::wall) {
    auto done = run.for_each_sample([&](const model::Sample& sample) {
      seconds.add(sample.time, sample.stack, metric == Metric::samples ? 1 : sample.weight_ns);
    });
    if (!done) return done;
  }
  if (metric != Metric::cpu && metric != Metric::samples) {
    auto done = run.for_each_wait([&](const SelectedWait& selected) {
      if (metric == Metric::lock && selected.kind != analysis::BlockKind::lock) return;
      model::StackId stack = selected.wait.stack;
      if (metric == Metric::waits) {
        if (selected.blocked_ns > 0) seconds.add(selected.begin_ns, stack, 1);
        return;
      }
      if (metric != Metric::runqueue) {
        seconds.add_span(selected.begin_ns, selected.blocked_ns, stack);
      }
      if (metric == Metric::runqueue || metric == Metric::wall) {
        seconds.add_span(selected.begin_ns + selected.blocked_ns, selected.runqueue_ns, stack);
      }
    });
    if (!done) return done;
  }
  seconds.write(output);
  return {};
}

}  // namespace assay::formats
