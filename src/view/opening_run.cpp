#include "view/opening_run.h"

#include "view/selection.h"

namespace assay::view {

Result<std::unique_ptr<OpeningRun>> OpeningRun::start(const std::string& path,
                                                      const run::Selection& selection,
                                                      bool local_source) {
  auto reader = run::Reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  auto fragment = page_fragment((*reader)->contents(), selection);
  if (!fragment) return std::unexpected(fragment.error());
  std::unique_ptr<OpeningRun> run(new OpeningRun(path));
  run->fragment_ = std::move(*fragment);
  run->thread_ = std::thread([run = run.get(), reader = std::move(*reader), local_source]() mutable {
    run->lay_out(std::move(reader), local_source);
  });
  return run;
}

OpeningRun::OpeningRun(std::unique_ptr<RunIndex> index)
    : path_(index->path()), permille_(1000), ended_(true), index_(std::move(index)) {}

OpeningRun::~OpeningRun() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void OpeningRun::lay_out(std::unique_ptr<run::Reader> reader, bool local_source) {
  IndexOptions options;
  options.local_source = local_source;
  options.permille = &permille_;
  options.stop = &stop_;
  auto index = RunIndex::make(std::move(reader), path_, options);
  {
    std::lock_guard held(mutex_);
    ended_ = true;
    if (index) {
      index_ = std::move(*index);
      permille_ = 1000;
    } else {
      error_ = index.error();
    }
  }
  done_.notify_all();
}

bool OpeningRun::wait_for(std::chrono::milliseconds patience) const {
  std::unique_lock held(mutex_);
  return done_.wait_for(held, patience, [this] { return ended_; });
}

Result<RunIndex*> OpeningRun::index() const {
  std::unique_lock held(mutex_);
  done_.wait(held, [this] { return ended_; });
  if (!index_) return std::unexpected(error_);
  return index_.get();
}

}  // namespace assay::view
