#include "session/load/ab.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/ranges.h>
#include <unistd.h>

#include "formats/export/output.h"
#include "load/address.h"
#include "load/argument_line.h"
#include "load/url.h"

namespace assay::session {
namespace {

constexpr const char* kVariantNames[] = {"a", "b"};
constexpr size_t kLogShown = 600;                  // bytes of a failed server's output
constexpr int64_t kPortFreeNs = 5 * kNsPerSecond;  // until a stopped server's port is free
constexpr int64_t kConnectNs = kNsPerSecond / 2;

// The shell only opens the log and becomes the server: its pid is the server's.
std::vector<std::string> logged(const std::vector<std::string>& command, const std::string& log) {
  std::vector<std::string> words{"/bin/sh", "-c", "exec \"$@\" >\"$0\" 2>&1 </dev/null", log};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string end_of_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  if (all.size() > kLogShown) all.erase(0, all.size() - kLogShown);
  std::string shown;
  for (char c : all) {
    bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown += c == '\n' ? ' ' : control ? '?' : c;
  }
  while (shown.ends_with(' ')) shown.pop_back();
  return shown;
}

std::optional<load::Url> address_of(const LoadRequest& request) {
  const std::string& text = request.ready_url.empty() ? request.what : request.ready_url;
  if (!load::looks_like_url(text) && request.ready_port == 0) return {};
  if (!load::looks_like_url(text))
    return load::Url{false, false, "127.0.0.1", static_cast<uint16_t>(request.ready_port), "/", ""};
  auto words = load::split_arguments(text);
  if (!words || words->empty()) return {};
  auto url = load::parse_url(words->front());
  return url ? std::optional(*url) : std::nullopt;
}

// A server that is there already would be measured in place of both variants.
Result<void> wait_until_free(const LoadRequest& request, const std::atomic<bool>& stop) {
  auto url = address_of(request);
  if (!url) return {};
  TimeNs deadline = monotonic_ns() + kPortFreeNs;
  while (!stop) {
    auto there = load::find_server(*url, kConnectNs);
    if (!there) return {};
    if (monotonic_ns() >= deadline)
      return fail_with_remedy(
          fmt::format("another server already answers at {}: it would be measured instead",
                      there->text()),
          fmt::format("stop it first (assay doctor --port {} says who it is)", url->port));
    ::usleep(50'000);
  }
  return {};
}

// What a server printed explains most of its failures.
Error explained(Error error, const AbRun& run, const std::string& log) {
  std::string said = end_of_log(log);
  error.what =
      fmt::format("variant {}, run {}: {}", run.variant == 0 ? "A" : "B", run.number, error.what);
  if (!said.empty()) error.what += fmt::format("; it said: {}", said);
  return error;
}

std::string how(const std::optional<os::ExitStatus>& status) {
  if (!status) return "";
  if (!status->signalled) return fmt::format(", with status {}", status->value);
  return fmt::format(", by signal {} ({})", status->value, strsignal(status->value));
}

Result<void> record_one(const AbOptions& options, const AbRun& run, const std::atomic<bool>& stop,
                        const std::function<void(const RecordProgress&)>& progress) {
  if (auto free = wait_until_free(options.record.load, stop); !free) return free;
  std::string log = run.run_path.substr(0, run.run_path.rfind('.')) + ".log";
  // Ours alone, before the shell writes to it.
  if (auto made = formats::write_whole(log, ""); !made) return made;
  RecordOptions record_options = options.record;
  const std::vector<std::string>& command = options.commands[run.variant];
  record_options.target.command = logged(command, log);
  record_options.target_text = fmt::format("-- {}", fmt::join(command, " "));
  record_options.output = run.run_path;
  record_options.stop_launched = true;
  auto outcome = record(record_options, stop, progress);
  if (!outcome) return std::unexpected(explained(outcome.error(), run, log));
  if (outcome->write_error) return std::unexpected(*outcome->write_error);
  if (stop) return {};
  bool driven = !options.record.load.what.empty();
  if (driven && outcome->end == EndReason::target_exited)
    return std::unexpected(explained(
        {fmt::format("the server ended during the capture{}", how(outcome->launched_exit)), "", 0},
        run, log));
  if (!driven && outcome->launched_exit && outcome->launched_exit->exit_code() != 0 &&
      outcome->end == EndReason::target_exited)
    return std::unexpected(explained(
        {fmt::format("the command ended with status {}", outcome->launched_exit->exit_code()), "",
         0},
        run, log));
  return {};
}

// Those of a longer series would be taken for this one's (`assay diff a-*.assay …`).
void remove_earlier_runs(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename();
    bool ours = (name.starts_with("a-") || name.starts_with("b-")) &&
                (name.ends_with(".assay") || name.ends_with(".log")) &&
                name.find_first_not_of("0123456789", 2) == name.rfind('.');
    if (ours) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

int abba_variant(int n) {
  int pair = n / 2;
  return pair % 2 == 0 ? n % 2 : 1 - n % 2;
}

Result<void> ab(const AbOptions& options, const std::atomic<bool>& stop,
                const std::function<void(const AbRun&, const RecordProgress&)>& progress,
                const std::function<void(const AbRun&)>& on_run) {
  int numbers[2] = {0, 0};
  if (options.record.overwrite) remove_earlier_runs(options.directory);
  for (int n = 0; n < 2 * options.runs && !stop; ++n) {
    AbRun run;
    run.variant = abba_variant(n);
    run.number = ++numbers[run.variant];
    run.run_path =
        fmt::format("{}/{}-{:02}.assay", options.directory, kVariantNames[run.variant], run.number);
    auto recorded =
        record_one(options, run, stop, [&](const RecordProgress& state) { progress(run, state); });
    if (!recorded) return recorded;
    if (stop) {
      unlink(run.run_path.c_str());  // cut short, it is not like the others
      break;
    }
    on_run(run);
  }
  return {};
}

}  // namespace assay::session
