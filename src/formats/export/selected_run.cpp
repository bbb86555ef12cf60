#include "formats/export/selected_run.h"

#include <unordered_set>

#include "analysis/accounted/chosen_paths.h"
#include "run/selection/chosen_threads.h"

namespace assay::formats {

SelectedRun::SelectedRun(const run::Reader& reader, const Selection& selection)
    : accounted_(reader, {nullptr, selection.without_idle}) {
  unknown_.comm = "unknown";
  labels_ = run::process_labels(contents());
}

Result<std::unique_ptr<SelectedRun>> SelectedRun::make(const run::Reader& reader,
                                                       const Selection& selection) {
  std::unique_ptr<SelectedRun> run(new SelectedRun(reader, selection));
  if (auto done = run->choose(selection); !done) return std::unexpected(done.error());
  if (auto done = run->accounted_.settle(); !done) return std::unexpected(done.error());
  return run;
}

const model::Process& SelectedRun::process_of(model::ThreadId id) const {
  uint32_t process = thread(id).process.value;
  return process < contents().processes.size() ? contents().processes[process] : unknown_;
}

Result<void> SelectedRun::choose(const Selection& selection) {
  auto threads = run::choose_threads(selection, contents());
  if (!threads) return std::unexpected(threads.error());
  threads_ = std::move(*threads);
  model::TimeSpan time = run::chosen_time(selection, contents());
  if (time.empty() && selection.narrows_time()) {
    const model::RunInfo& info = contents().info;
    int64_t length = model::TimeSpan{info.window_begin_ns, info.window_end_ns}.ns();
    return fail("--from and --to leave nothing of the run's {:.3f} s",
                static_cast<double>(length) / 1e9);
  }
  begin_ns_ = time.begin_ns;
  end_ns_ = time.end_ns;
  auto paths = analysis::choose_paths(selection, tree());
  if (!paths) return std::unexpected(paths.error());
  paths_ = std::move(*paths);
  return {};
}

Result<void> SelectedRun::for_each_sample(const std::function<void(const model::Sample&)>& visit) {
  return reader().for_each_sample({begin_ns_, end_ns_}, [&](const model::Sample& sample) {
    if (has(sample.thread) && has_path(sample.stack)) visit(sample);
  });
}

Result<void> SelectedRun::for_each_wait(const std::function<void(const SelectedWait&)>& visit) {
  model::TimeSpan time{begin_ns_, end_ns_};
  auto wanted = [&](const model::Wait& wait) { return has(wait.thread) && has_path(wait.stack); };
  auto cut = [&](const analysis::AccountedWait& accounted) {
    const model::Wait& wait = accounted.wait;
    model::WaitPieces pieces = model::WaitPieces(wait).within(time);
    SelectedWait selected{wait, accounted.kind};
    selected.begin_ns = pieces.whole().begin_ns;
    selected.blocked_ns = pieces.ns(model::WaitState::blocked);
    int64_t queued_ns = pieces.ns(model::WaitState::runqueue);
    model::TimeSpan wakeup = pieces.piece(model::WaitState::wakeup);
    if (wakeup.empty()) selected.runqueue_ns = queued_ns;
    if (accounted.idle) {
      selected.begin_ns += selected.blocked_ns;
      selected.blocked_ns = 0;
    }
    if (selected.blocked_ns > 0 || selected.runqueue_ns > 0) visit(selected);
    if (!wakeup.empty())
      visit({wait, analysis::BlockKind::wakeup, wakeup.begin_ns, wakeup.ns(), queued_ns});
  };
  return accounted_.for_each_wait(reader(), {begin_ns_, end_ns_}, wanted, cut);
}

Result<void> SelectedRun::for_each_alloc(const std::function<void(const SelectedAlloc&)>& visit) {
  if (!contents().has_heap) return {};
  std::unordered_set<uint64_t> freed;
  auto done = reader().for_each_heap_free(
      {begin_ns_, end_ns_}, [&](const model::HeapFree& row) { freed.insert(row.id); });
  if (!done) return done;
  return reader().for_each_heap_alloc({begin_ns_, end_ns_}, [&](const model::HeapAlloc& alloc) {
    if (has(alloc.thread) && has_path(alloc.stack)) visit({alloc, !freed.contains(alloc.id)});
  });
}

Result<void> SelectedRun::for_each_heap_sum(
    const std::function<void(const model::HeapSum&)>& visit) {
  const model::RunInfo& info = contents().info;
  if (contents().heap_sums.empty()) return {};
  if (begin_ns_ != info.window_begin_ns || end_ns_ < info.window_end_ns)
    return fail_with_remedy("the imported heap profile has no times",
                            "leave --time, --from and --to out");
  for (const model::HeapSum& sum : contents().heap_sums) {
    if (has(sum.thread) && has_path(sum.stack)) visit(sum);
  }
  return {};
}

}  // namespace assay::formats
