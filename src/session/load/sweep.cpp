#include "session/load/sweep.h"

#include <algorithm>

#include "load/argument_line.h"
#include "load/url.h"
#include "session/lifecycle/running_target.h"

namespace assay::session {
namespace {

Result<void> check_load(const std::string& what) {
  if (!load::looks_like_url(what)) {
    return fail_with_remedy("a sweep needs load that it can set the concurrency of",
                            "--load http://127.0.0.1:8000/ or grpc://…");
  }
  auto words = load::split_arguments(what);
  if (!words) return std::unexpected(words.error());
  for (const std::string& word : *words) {
    if (word.starts_with("-c") || word.starts_with("--connections")) {
      return fail("--concurrency sets the connections: leave {} out of --load", word);
    }
    if (word == "--rate" || word.starts_with("--rate=")) {
      return fail("a sweep is a closed loop: leave --rate out of --load");
    }
  }
  return {};
}

// A server started for the sweep, and stopped with it.
class SweptServer {
 public:
  ~SweptServer() {
    if (launched_) launched_->terminate(kLaunchedGraceNs);
  }
  Result<void> start(target::TargetSpec& target) {
    if (target.command.empty()) return {};
    auto started = os::LaunchedProcess::start(target.command);
    if (!started) return std::unexpected(started.error());
    launched_ = std::move(*started);
    target.command.clear();
    target.pids = {launched_->pid()};
    return launched_->release();
  }

 private:
  std::optional<os::LaunchedProcess> launched_;
};

}  // namespace

Result<void> sweep(const SweepOptions& options, const std::atomic<bool>& stop,
                   const std::function<void(uint32_t, const RecordProgress&)>& progress,
                   const std::function<Result<void>(const SweptLevel&)>& on_level) {
  if (auto fits = check_load(options.record.load.what); !fits) return fits;
  RecordOptions record_options = options.record;
  SweptServer server;
  if (auto started = server.start(record_options.target); !started) return started;
  for (uint32_t level : options.levels) {
    if (stop) return {};
    record_options.load.what = fmt::format("{} --connections {}", options.record.load.what, level);
    record_options.output = fmt::format("{}/clients-{}.assay", options.directory, level);
    auto outcome =
        record(record_options, stop, [&](const RecordProgress& state) { progress(level, state); });
    if (!outcome) return std::unexpected(outcome.error());
    if (outcome->write_error) return std::unexpected(*outcome->write_error);
    if (stop) return {};  // a level cut short would bend the curve
    if (auto taken = on_level({level, record_options.output}); !taken) return taken;
  }
  return {};
}

}  // namespace assay::session
