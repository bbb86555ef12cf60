#include "analysis/compare/read_runs.h"

#include <algorithm>
#include <future>
#include <thread>

namespace assay::analysis {
namespace {

struct Opened {
  std::unique_ptr<run::Reader> reader;
  UnplacedRun run;
};

Result<Opened> read_one(const std::string& path, const run::Selection& selection) {
  auto reader = run::Reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  auto run = read_unplaced_run(**reader, path, selection);
  if (!run) {
    Error error = run.error();
    if (!selection.is_whole()) error.what = path + ": " + error.what;
    return std::unexpected(std::move(error));
  }
  return Opened{std::move(*reader), std::move(*run)};
}

}  // namespace

Result<std::vector<RunValues>> read_runs(const std::vector<std::string>& paths, UnionTree& tree,
                                         const run::Selection& selection) {
  // No more at a time than there are CPUs: each holds a run's stacks in memory.
  size_t at_once = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
  std::vector<RunValues> runs;
  for (size_t begin = 0; begin < paths.size(); begin += at_once) {
    std::vector<std::future<Result<Opened>>> reading;
    for (size_t i = begin; i < std::min(paths.size(), begin + at_once); ++i)
      reading.push_back(std::async(std::launch::async, read_one, paths[i], selection));
    for (auto& one : reading) {
      auto opened = one.get();
      if (!opened) return std::unexpected(opened.error());
      runs.push_back(place(std::move(opened->run), tree));
    }
  }
  return runs;
}

}  // namespace assay::analysis
