#include "session/load/load_driver.h"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "base/units.h"
#include "load/address.h"
#include "load/argument_line.h"
#include "load/secrets.h"
#include "load/url.h"

namespace assay::session {
namespace {

constexpr int kAnswersWithError = 3;  // exit codes of `assay load --probe`
constexpr int kRefusesRequest = 4;
constexpr int64_t kRefusalNs = 2 * kNsPerSecond;  // a server may learn its paths after its port
constexpr int kWrongUsage = 2;
constexpr int64_t kProbePauseNs = 100 * kNsPerMs;
constexpr int64_t kQuickEndNs = kNsPerSecond;
constexpr int kMostQuickFailures = 3;
constexpr int64_t kMeasureNs = 500 * kNsPerMs;
constexpr int64_t kMostGapNs =
    kNsPerSecond;  // so long without load, and the capture is not covered
constexpr size_t kOutputBytes = 4096;

std::string own_program() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  bool usable = !error && std::filesystem::exists(path, error);
  return usable ? path.string() : "/proc/self/exe";
}

bool names_any(const std::vector<std::string>& words, std::initializer_list<std::string_view> of) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(of.begin(), of.end(), [&](std::string_view name) {
      return word == name || word.starts_with(std::string(name) + "=");
    });
  });
}

std::string exit_text(const os::ExitStatus& status) {
  return status.signalled ? fmt::format("ended by signal {}", status.value)
                          : fmt::format("ended with exit status {}", status.value);
}

}  // namespace

Result<std::unique_ptr<LoadDriver>> LoadDriver::create(const LoadRequest& request) {
  std::unique_ptr<LoadDriver> driver(new LoadDriver());
  driver->request_ = request;
  driver->facts_.what = load::hide_secrets(request.what);
  driver->command_ = driver->facts_.command = !load::looks_like_url(request.what);
  if (!driver->command_) {
    auto words = load::split_arguments(request.what);
    if (!words) return std::unexpected(words.error());
    auto url = load::parse_url(words->front());
    if (!url) return std::unexpected(url.error());
    driver->words_ = std::move(*words);
    driver->ready_words_ = driver->words_;
    bool endless = !names_any(driver->words_, {"--for", "-n", "--requests"});
    if (endless) driver->words_.insert(driver->words_.end(), {"--for", "24h"});
  }
  if (!request.ready_url.empty()) {
    auto words = load::split_arguments(request.ready_url);
    if (!words) return std::unexpected(words.error());
    if (words->empty()) return fail("--ready is empty");
    auto url = load::parse_url(words->front());
    if (!url) return std::unexpected(url.error());
    driver->ready_words_ = std::move(*words);
  }
  return driver;
}

Result<LoadProcess> LoadDriver::spawn(const std::vector<std::string>& words,
                                      const std::vector<std::string>& extra) const {
  // Load is made by this very program under another command. Whatever is linked with this library
  // but is no `assay` would do again what it did, and start load again.
  constexpr const char* kMakesLoad = "ASSAY_MAKES_LOAD";
  if (::getenv(kMakesLoad) != nullptr)
    return fail("a process that was started to make load does not start more of it");
  ::setenv(kMakesLoad, "1", 1);
  auto process = LoadProcess::start([&](int report_fd) {
    std::vector<std::string> argv{own_program(), "load"};
    argv.insert(argv.end(), words.begin(), words.end());
    argv.insert(argv.end(), extra.begin(), extra.end());
    argv.insert(argv.end(), {"--quiet", "--report-to", std::to_string(report_fd)});
    return argv;
  });
  ::unsetenv(kMakesLoad);
  return process;
}

// The exit code of one question to the server.
Result<int> LoadDriver::probe(const std::vector<std::string>& words, std::string& why) const {
  auto process = spawn(words, {"--probe"});
  if (!process) return std::unexpected(process.error());
  std::optional<os::ExitStatus> status;
  while (!(status = process->poll())) ::usleep(5000);
  std::string said = process->read();
  auto line = load::parse_line(std::string_view(said).substr(0, said.find('\n')));
  if (line && std::holds_alternative<load::ErrorLine>(*line)) {
    why = std::get<load::ErrorLine>(*line).text;
  }
  return status->exit_code();
}

Result<void> LoadDriver::wait_until_ready(const std::atomic<bool>& stop,
                                          const std::function<bool()>& server_gone,
                                          const std::function<void()>& while_waiting) {
  if (ready_words_.empty() && request_.ready_port == 0) return {};
  bool any_answer = request_.ready_url.empty();
  TimeNs refused_since = 0;
  TimeNs deadline = monotonic_ns() + request_.ready_timeout_ns;
  std::string why;
  while (!stop) {
    if (ready_words_.empty()) {
      load::Url url{false, false, "127.0.0.1", static_cast<uint16_t>(request_.ready_port), "/", ""};
      auto there = load::find_server(url, kNsPerSecond);
      if (there) return {};
      why = there.error().what;
    } else {
      auto code = probe(ready_words_, why);
      if (!code) return std::unexpected(code.error());
      if (*code == 0 || (any_answer && *code == kAnswersWithError)) return {};
      if (*code == kWrongUsage) {
        return fail("--load or --ready is not what assay load takes{}{}", why.empty() ? "" : ": ",
                    why);
      }
      bool refused = any_answer && *code == kRefusesRequest;
      if (!refused) refused_since = 0;
      if (refused && refused_since == 0) refused_since = monotonic_ns();
      if (refused && monotonic_ns() - refused_since >= kRefusalNs) {
        return fail_with_remedy(fmt::format("the server does not take the load's request: {}", why),
                                fmt::format("correct it until this works: assay load {} -n 1 -c 1",
                                            load::hide_secrets(words_.front())));
      }
    }
    if (server_gone()) return fail("the server ended before it answered ({})", why);
    if (monotonic_ns() >= deadline) {
      return fail_with_remedy(fmt::format("the server was not ready within {}: {}",
                                          format_duration(request_.ready_timeout_ns), why),
                              "--ready-timeout 2m, or --ready URL of a health check");
    }
    while_waiting();
    ::usleep(kProbePauseNs / 1000);
  }
  return {};
}

Result<void> LoadDriver::start() {
  Result<LoadProcess> process = fail("not started");
  if (command_) {
    process = LoadProcess::start([this](int report_fd) {
      // By path, since plain shells know descriptors of one digit only.
      return std::vector<std::string>{
          "/bin/sh", "-c",
          fmt::format("exec 0</dev/null 1>/proc/self/fd/{} 2>&1\n{}", report_fd, request_.what)};
    });
  } else {
    process = spawn(words_, {});
  }
  if (!process) return std::unexpected(process.error());
  process_ = std::move(*process);
  started_at_ = monotonic_ns();
  cpu_of_current_ = 0;
  if (away_since_ != 0 && in_window_) away_ns_ += started_at_ - away_since_;
  away_since_ = 0;
  return {};
}

std::vector<pid_t> LoadDriver::pids() const {
  return process_ ? std::vector<pid_t>{process_->pid()} : std::vector<pid_t>{};
}

void LoadDriver::take_output() {
  pending_ += process_->read();
  if (command_) {
    if (pending_.size() > kOutputBytes) pending_.erase(0, pending_.size() - kOutputBytes);
    return;
  }
  size_t begin = 0;
  for (size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1) {
    take_line(std::string_view(pending_).substr(begin, end - begin));
  }
  pending_.erase(0, begin);
}

void LoadDriver::take_line(std::string_view line) {
  auto parsed = load::parse_line(line);
  if (!parsed) return;
  if (auto* plan = std::get_if<load::PlanLine>(&*parsed)) facts_.plan = *plan;
  if (auto* tick = std::get_if<load::TickLine>(&*parsed)) window_.add_tick(*tick);
  if (auto* error = std::get_if<load::ErrorLine>(&*parsed)) fault_ = error->text;
}

void LoadDriver::measure_group(TimeNs now) {
  if (!command_ || now < next_measure_) return;
  next_measure_ = now + kMeasureNs;
  cpu_of_current_ = std::max(cpu_of_current_, group_cpu_ns(proc_, process_->pid()));
  window_.set_group_cpu(now, cpu_of_ended_ + cpu_of_current_);
}

bool LoadDriver::poll(TimeNs now) {
  if (failed_) return false;
  if (!process_) return true;
  measure_group(now);
  auto status = process_->poll();
  take_output();
  return status ? restart(now, *status) : true;
}

// A command that runs for a while and ends is one that is to be repeated; one that fails at once,
// time after time, will not do better.
bool LoadDriver::restart(TimeNs now, const os::ExitStatus& status) {
  process_->stop();
  process_.reset();
  cpu_of_ended_ += cpu_of_current_;
  away_since_ = now;
  bool quick = now - started_at_ < kQuickEndNs && status.exit_code() != 0;
  quick_failures_ = quick ? quick_failures_ + 1 : 0;
  if (fault_.empty() || command_) fault_ = exit_text(status);
  if (command_ && quick && !pending_.empty()) {
    fault_ += ": " + pending_.substr(0, pending_.find('\n'));
  }
  if (quick_failures_ >= kMostQuickFailures || status.exit_code() == kWrongUsage) {
    failed_ = true;
    return false;
  }
  if (auto started = start(); !started) {
    fault_ = started.error().what;
    failed_ = true;
    return false;
  }
  ++facts_.restarts;
  return true;
}

void LoadDriver::begin_window(run::Writer& writer, std::atomic<uint32_t>& next_series, TimeNs now) {
  take_output();
  next_measure_ = 0;
  measure_group(now);
  in_window_ = true;
  facts_.restarts = 0;
  window_.begin(writer, next_series, command_, now);
}

std::string LoadDriver::ended(TimeNs window_begin, TimeNs window_end) const {
  bool nothing_worked = !command_ && window_.ok_in_window() == 0;
  std::string why = fault_.empty() ? "no answer" : fault_;
  if (nothing_worked) return "failed: " + why;
  int64_t away =
      away_ns_ + (away_since_ != 0 ? window_end - std::max(away_since_, window_begin) : 0);
  bool silent = !command_ && window_end - window_.last_tick() > kMostGapNs;
  if (failed_ || away > kMostGapNs) return "early: " + why;
  if (silent) return "early: it stopped reporting";
  return "covered";
}

void LoadDriver::end_window(TimeNs window_begin, TimeNs window_end) {
  if (process_) {
    next_measure_ = 0;
    measure_group(window_end);
    auto status = process_->poll();
    if (status && away_since_ == 0) away_since_ = window_end;
    take_output();
    window_.close();  // what comes from here on is of the end, not of the window
    process_->stop();
    take_output();
    process_.reset();
  }
  facts_.ended = load::hide_secrets(ended(window_begin, window_end));
  if (command_) facts_.output = load::hide_secrets(pending_);
  window_.finish(facts_, window_begin, window_end);
}

}  // namespace assay::session
