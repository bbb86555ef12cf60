#include "cli/run_or_capture.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>

#include "base/file_door.h"
#include "cli/output/terminal.h"
#include "session/import/import_http.h"
#include "session/record/cache_dir.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// What is not there or empty is left to the run's reader, which says so.
bool is_capture(const std::string& path) {
  if (path == "-" || session::is_http_url(path)) return true;
  std::error_code missing;
  fs::file_status status = fs::status(path, missing);
  if (fs::is_fifo(status)) return true;
  if (!fs::is_regular_file(status) || fs::file_size(path, missing) == 0) return false;
  constexpr std::string_view kRunsBegin = "SQLite format 3";
  std::string begin(kRunsBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file.is_open() && begin != kRunsBegin;
}

void show_notes(const std::string& path, const run::Contents& contents, bool shows_times) {
  for (const auto& note : contents.notes) {
    // A command that needs waits says itself when there are none.
    if (note.topic == "waits" || (note.topic == "times" && !shows_times)) continue;
    say(stderr, "assay: {}: {}\n", path, note.text);
    if (!note.remedy.empty()) say(stderr, "  try: {}\n", note.remedy);
  }
}

}  // namespace

RunOrCapture::RunOrCapture(std::string path)
    : path_(std::move(path)), is_capture_(is_capture(path_)) {}

void RunOrCapture::allow(session::Confinement& rules) const {
  if (is_capture_) return allow_capture(rules, {path_});
  rules.files.runs.push_back(path_);
}

void allow_capture(session::Confinement& rules, const std::vector<std::string>& inputs) {
  rules.files.modules = true;
  rules.files.cache = session::default_cache_dir();
  for (const std::string& input : inputs) {
    rules.files.captures.push_back(input);
    rules.calls.connects |= session::is_http_url(input);
  }
}

Result<std::unique_ptr<run::Reader>> RunOrCapture::open(const ImportFlags& flags,
                                                        bool shows_times) const {
  if (!is_capture_) return run::Reader::open(path_);
  auto file = file_door().temporary();
  if (!file) return std::unexpected(file.error());
  UniqueFd written(::fcntl(file->get(), F_DUPFD_CLOEXEC, 0));
  if (!written.valid()) return fail_errno("no file descriptor is left");
  session::ImportOptions options;
  flags.fill(options);
  options.inputs = {path_};
  options.output = path_;
  auto done = session::import_into(std::move(*file), options);
  if (!done) return std::unexpected(done.error());
  auto reader = run::Reader::read_back(std::move(written), path_);
  if (reader) show_notes(path_, (*reader)->contents(), shows_times);
  return reader;
}

}  // namespace assay::cli
