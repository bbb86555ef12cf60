#include "view/run_index.h"

#include <cmath>
#include <utility>

#include "analysis/analyse.h"
#include "report/json/json.h"
#include "view/data/time_walk.h"

namespace assay::view {
namespace {

// A range of a large run is read for at most two of these.
constexpr uint32_t kSlices = 64;

// As many as the page's heat map has (ui/src/time/scale.ts): columns of a round length, 20 rows
// each. The lanes' bins are a whole number of them.
uint32_t moment_count(int64_t window_ns) {
  constexpr double kMostColumns = 130;
  constexpr uint32_t kRows = 20;
  double about = static_cast<double>(window_ns) / kMostColumns;
  double power = std::pow(10, std::floor(std::log10(std::max(1.0, about))));
  double step = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= about * 0.999) step = factor * power;
  }
  double columns = std::max(1.0, std::round(static_cast<double>(window_ns) / step));
  return static_cast<uint32_t>(columns) * kRows;
}

}  // namespace

Result<std::unique_ptr<RunIndex>> RunIndex::open(const std::string& path) {
  auto reader = run::Reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  return make(std::move(*reader), path);
}

Result<std::unique_ptr<RunIndex>> RunIndex::make(std::unique_ptr<run::Reader> reader,
                                                 const std::string& path,
                                                 const IndexOptions& options) {
  std::unique_ptr<RunIndex> index(new RunIndex(std::move(reader), path));
  index->local_source_ = options.local_source;
  if (auto looked = index->look_once(options); !looked) return std::unexpected(looked.error());
  return index;
}

RunIndex::RunIndex(std::unique_ptr<run::Reader> reader, std::string path)
    : path_(std::move(path)), reader_(std::move(reader)), pool_(*reader_), accounted_(*reader_) {
  lay_out();
  mark_inlined();
}

// A path's parent always has a smaller number, so sizes add up in one pass from the end, and
// children find their place after their elder siblings in one pass from the beginning.
void RunIndex::lay_out() {
  const auto& paths = tree().paths();
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
    category_[node] = accounted_.category_of(static_cast<analysis::PathIndex>(path));
  }
}

// A frame whose function was inlined into its caller stands for several nodes, outermost first; all
// but the outermost are inlined.
void RunIndex::mark_inlined() {
  const auto& paths = tree().paths();
  const auto& stacks = contents().stacks;
  inlined_.resize(paths.size());
  for (uint32_t i = 1; i < stacks.size(); ++i) {
    uint32_t parent = stacks[i].parent.value < i ? stacks[i].parent.value : 0;
    analysis::PathIndex stop = tree().path_of({parent});
    for (analysis::PathIndex path = tree().path_of({i}); path != stop && path != 0;
         path = paths[path].parent) {
      if (paths[path].parent != stop) inlined_[node_of_path_[path]] = true;
    }
  }
}

// Tells how far several passes over the run are, by the time of the rows.
class RunIndex::Meter {
 public:
  Meter(const RunIndex& run, std::atomic<int>* permille, int passes)
      : run_(run), permille_(permille), passes_(passes) {}
  void next_pass() { ++done_; }
  void at(TimeNs time_ns) const {
    if (permille_ == nullptr || ++calls_ % 65'536 != 0) return;
    double share = static_cast<double>(time_ns - run_.begin_ns()) /
                   static_cast<double>(std::max<int64_t>(1, run_.window_ns()));
    *permille_ = static_cast<int>(1000 * (done_ + std::clamp(share, 0.0, 1.0)) / passes_);
  }

 private:
  const RunIndex& run_;
  std::atomic<int>* permille_;
  int passes_;
  int done_ = 0;
  mutable uint32_t calls_ = 0;
};

Result<void> RunIndex::look_once(const IndexOptions& options) {
  seen_.resize(contents().threads.size());
  auto rows = reader_->row_count();
  if (!rows) return std::unexpected(rows.error());
  if (*rows >= options.large_rows && window_ns() > 0) make_sums(options);
  Meter meter(*this, options.permille, sums_ ? 3 : 2);
  if (auto settled = settle(options, meter); !settled || !sums_) return settled;
  meter.next_pass();
  run::TimeRange window{begin_ns(), end_ns(), options.stop};
  if (auto read = add_up_waits(window, meter); !read) return read;
  sums_->finish();
  moments_->finish();
  return {};
}

Result<void> RunIndex::settle(const IndexOptions& options, Meter& meter) {
  bool sampling = false;
  analysis::Onlooker onlooker;
  onlooker.stop = options.stop;
  onlooker.wait = [&](const model::Wait& wait) {
    meter.at(wait.start);
    has_waits_ = true;
    if (accounted_.lists(wait.thread)) seen_[wait.thread.value] = true;
  };
  onlooker.sample = [&](const model::Sample& sample) {
    if (!std::exchange(sampling, true)) meter.next_pass();
    meter.at(sample.time);
    if (!accounted_.lists(sample.thread)) return;
    seen_[sample.thread.value] = true;
    if (sums_) add_up(sample);
  };
  auto settled = accounted_.settle(onlooker);
  if (!sampling) meter.next_pass();
  return settled;
}

void RunIndex::add_up(const model::Sample& sample) {
  sums_->add(sums_->bins().of(sample.time), sample.thread, running_state(sample.stack),
             node_of(sample.stack), sample.weight_ns, 1);
  if (has_waits_) return;
  moments_->add(moments_->bins().of(sample.time), sample.thread, kRunning, 0, sample.weight_ns, 0);
}

void RunIndex::make_sums(const IndexOptions& options) {
  size_t threads = contents().threads.size();
  sums_ =
      std::make_unique<SliceSums>(begin_ns(), end_ns(), kSlices, threads, options.most_sum_bytes);
  moments_ = std::make_unique<SliceSums>(begin_ns(), end_ns(), moment_count(window_ns()), threads,
                                         options.most_sum_bytes / 4);
}

Result<void> RunIndex::add_up_waits(const run::TimeRange& window, const Meter& meter) {
  Selection all;
  all.begin_ns = window.begin_ns;
  all.end_ns = window.end_ns;
  all.stop = window.stop;
  return walk_waits(*this, all, [&](const Piece& piece) {
    meter.at(piece.begin_ns);
    moments_->bins().cut(piece.begin_ns, piece.end_ns, [&](uint32_t bin, int64_t ns) {
      moments_->add(bin, piece.thread, piece.state, 0, ns, 0);
    });
    if (piece.state == kRunning) return;
    // As cell_columns() counts: a wait counts once, where it begins.
    uint64_t count = piece.begin_ns == piece.wait_begin_ns ? 1 : 0;
    sums_->bins().cut(piece.begin_ns, piece.end_ns, [&](uint32_t bin, int64_t ns) {
      sums_->add(bin, piece.thread, piece.state, piece.node, ns, count);
      count = 0;
    });
  });
}

ThreadState RunIndex::running_state(model::StackId stack) const {
  const analysis::Function* leaf = tree().leaf_of(stack);
  return leaf && leaf->kind == analysis::CodeKind::kernel ? kKernel : kUser;
}

Result<std::string> RunIndex::report_json(const run::Reader& reader) {
  std::lock_guard held(report_mutex_);
  if (!report_json_.empty()) return report_json_;
  analysis::Options options;
  options.run_path = path_;
  auto report = analysis::analyse(reader, options);
  if (!report) return std::unexpected(report.error());
  report_json_ = report::render_json(*report);
  return report_json_;
}

}  // namespace assay::view
