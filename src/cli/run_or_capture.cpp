#include "cli/run_or_capture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/output/terminal.h"
#include "session/import/import_http.h"

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

// A directory of our own, so that whatever is made in it goes with it.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "assay-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr) {
      return fail_with_remedy("no temporary directory can be made",
                              "set TMPDIR, or use assay import -o RUN.assay first");
    }
    return TemporaryDirectory(std::move(name));
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void show_notes(const std::string& path, const run::Contents& contents, bool shows_times) {
  for (const auto& note : contents.notes) {
    // A command that needs waits says itself when there are none.
    if (note.topic == "waits" || (note.topic == "times" && !shows_times)) continue;
    say(stderr, "assay: {}: {}\n", path, note.text);
    if (!note.remedy.empty()) say(stderr, "  try: {}\n", note.remedy);
  }
}

}  // namespace

Result<std::unique_ptr<run::Reader>> open_run_or_capture(const std::string& path,
                                                         const ImportFlags& flags,
                                                         bool shows_times) {
  if (!is_capture(path)) return run::Reader::open(path);
  auto directory = TemporaryDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  session::ImportOptions options;
  flags.fill(options);
  options.inputs = {path};
  options.output = directory->file("run.assay");
  if (auto done = session::import_files(options); !done) return std::unexpected(done.error());
  auto reader = run::Reader::open(options.output);
  if (reader) show_notes(path, (*reader)->contents(), shows_times);
  return reader;
}

}  // namespace assay::cli
