#include "formats/idle_waits.h"

namespace assay::formats {

IdleWaits::IdleWaits(const analysis::CallTree& tree, const run::Contents& run)
    : rules_(analysis::default_rules(), sets_),
      features_(tree, sets_),
      judge_(tree, features_, rules_, run) {}

Result<void> IdleWaits::learn(const run::Reader& reader, analysis::WaitClassifier& classifier) {
  const run::Contents& run = reader.contents();
  run::TimeRange window{run.info.window_begin_ns, run.info.window_end_ns};
  auto done = reader.for_each_wait(window, [&](const model::Wait& wait) {
    if (wait.thread.value < run.threads.size()) judge_.observe_wait(wait, classifier.kind_of(wait));
  });
  if (!done) return done;
  done = reader.for_each_sample(window, [&](const model::Sample& sample) {
    if (sample.thread.value < run.threads.size()) judge_.observe_sample(sample);
  });
  if (done) judge_.decide();
  return done;
}

}  // namespace assay::formats
