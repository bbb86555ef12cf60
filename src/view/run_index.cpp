#include "view/run_index.h"

#include "analysis/analyse.h"
#include "report/json.h"

namespace assay::view {

Result<std::unique_ptr<RunIndex>> RunIndex::open(const std::string& path) {
  auto reader = run::Reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  return make(std::move(*reader), path);
}

Result<std::unique_ptr<RunIndex>> RunIndex::make(std::unique_ptr<run::Reader> reader,
                                                 const std::string& path) {
  std::unique_ptr<RunIndex> index(new RunIndex(std::move(reader), path));
  if (auto looked = index->look_once(); !looked) return std::unexpected(looked.error());
  return index;
}

RunIndex::RunIndex(std::unique_ptr<run::Reader> reader, std::string path)
    : path_(std::move(path)),
      reader_(std::move(reader)),
      tree_(reader_->contents()),
      classifier_(tree_),
      rules_(tree_, reader_->contents()) {
  lay_out();
  mark_inlined();
}

// A path's parent always has a smaller number, so sizes add up in one pass from the end, and
// children find their place after their elder siblings in one pass from the beginning.
void RunIndex::lay_out() {
  const auto& paths = tree_.paths();
  std::vector<uint32_t> size(paths.size(), 1);
  for (size_t path = paths.size(); path-- > 1;) size[paths[path].parent] += size[path];
  node_of_path_.resize(paths.size());
  depth_.resize(paths.size());
  function_.resize(paths.size());
  category_.resize(paths.size());
  std::vector<uint32_t> next(paths.size());  // by path: where its next child goes
  next[0] = 1;
  for (size_t path = 1; path < paths.size(); ++path) {
    uint32_t parent = paths[path].parent;
    NodeIndex node = next[parent];
    next[parent] += size[path];
    next[path] = node + 1;
    node_of_path_[path] = node;
    depth_[node] = depth_[node_of_path_[parent]] + 1;
    function_[node] = paths[path].function;
    category_[node] = rules_.category_of(static_cast<analysis::PathIndex>(path));
  }
}

// A frame whose function was inlined into its caller stands for several nodes, outermost first; all
// but the outermost are inlined.
void RunIndex::mark_inlined() {
  const auto& paths = tree_.paths();
  const auto& stacks = contents().stacks;
  inlined_.resize(paths.size());
  for (uint32_t i = 1; i < stacks.size(); ++i) {
    uint32_t parent = stacks[i].parent.value < i ? stacks[i].parent.value : 0;
    analysis::PathIndex stop = tree_.path_of({parent});
    for (analysis::PathIndex path = tree_.path_of({i}); path != stop && path != 0;
         path = paths[path].parent) {
      if (paths[path].parent != stop) inlined_[node_of_path_[path]] = true;
    }
  }
}

Result<void> RunIndex::look_once() {
  run::TimeRange window{begin_ns(), end_ns()};
  seen_.resize(contents().threads.size());
  if (auto learnt = classifier_.learn(*reader_); !learnt) return learnt;
  auto status = reader_->for_each_wait(window, [this](const model::Wait& wait) {
    has_waits_ = true;
    if (wait.thread.value >= seen_.size()) return;
    seen_[wait.thread.value] = true;
    rules_.observe(wait, classifier_.kind_of(wait));
  });
  if (!status) return status;
  status = reader_->for_each_sample(window, [this](const model::Sample& sample) {
    if (sample.thread.value >= seen_.size()) return;
    seen_[sample.thread.value] = true;
    rules_.observe(sample);
  });
  if (status) rules_.decide();
  return status;
}

ThreadState RunIndex::running_state(model::StackId stack) const {
  const analysis::Function* leaf = tree_.leaf_of(stack);
  return leaf && leaf->kind == analysis::CodeKind::kernel ? kKernel : kUser;
}

ThreadState RunIndex::waiting_state(const model::Wait& wait) {
  analysis::BlockKind kind = classifier_.kind_of(wait);
  return rules_.idle(wait, kind) ? kIdle : blocked_state(kind);
}

Result<std::string> RunIndex::report_json() {
  if (!report_json_.empty()) return report_json_;
  analysis::Options options;
  options.run_path = path_;
  auto report = analysis::analyse(*reader_, options);
  if (!report) return std::unexpected(report.error());
  report_json_ = report::render_json(*report);
  return report_json_;
}

}  // namespace assay::view
