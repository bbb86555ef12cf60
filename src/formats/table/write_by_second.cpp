#include "formats/table/write_by_second.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "formats/export/text.h"
#include "formats/export/wait_leaf.h"

namespace assay::formats {
namespace {

class BySecond {
 public:
  static constexpr int kNoLeaf = -1;  // of a WaitLeaf
  explicit BySecond(const SelectedRun& run) : run_(run) {}

  void add(TimeNs time, model::StackId stack, int64_t value, int leaf = kNoLeaf) {
    if (value <= 0) return;
    sums_[{(time - run_.begin_ns()) / kNsPerSecond, run_.tree().path_of(stack), leaf}] += value;
  }
  void add_span(TimeNs begin, int64_t length, model::StackId stack, int leaf) {
    for (TimeNs end = begin + length; begin < end;) {
      TimeNs second_end = begin + kNsPerSecond - (begin - run_.begin_ns()) % kNsPerSecond;
      TimeNs until = std::min(end, second_end);
      add(begin, stack, until - begin, leaf);
      begin = until;
    }
  }
  void write(Output& output) {
    output.write("second\tstack\tvalue\n");
    for (const auto& [key, value] : sums_) {
      auto [second, path, leaf] = key;
      std::string_view below = leaf == kNoLeaf ? "" : wait_leaf_name(leaf);
      output.write(fmt::format("{}\t{}{}{}\t{}\n", second, text_of(path), below.empty() ? "" : ";",
                               below, value));
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
    it->second = harmless_cell(std::move(it->second));
    return it->second;
  }

  const SelectedRun& run_;
  std::map<std::tuple<int64_t, analysis::PathIndex, int>, int64_t> sums_;
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
        if (selected.waits() > 0) seconds.add(selected.begin_ns, stack, 1);
        return;
      }
      bool wall = metric == Metric::wall;
      if (metric != Metric::runqueue) {
        seconds.add_span(selected.begin_ns, selected.blocked_ns, stack,
                         wall ? blocked_leaf(selected.kind) : BySecond::kNoLeaf);
      }
      if (metric == Metric::runqueue || wall) {
        seconds.add_span(selected.begin_ns + selected.blocked_ns, selected.runqueue_ns, stack,
                         wall ? kRunQueueLeaf : BySecond::kNoLeaf);
      }
    });
    if (!done) return done;
  }
  seconds.write(output);
  return {};
}

}  // namespace assay::formats
