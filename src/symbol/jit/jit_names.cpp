// The names of code without a file: a process' perf map and jitdump, read on as they grow.
#include <algorithm>
#include <charconv>
#include <mutex>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "model/code/anonymous_module.h"
#include "symbol/file_access.h"
#include "symbol/jit/jit_code.h"
#include "symbol/name_source.h"

namespace assay::symbol {
namespace {

constexpr uint64_t kMaxFileBytes = 512 << 20;
constexpr uint64_t kReadBytes = 8 << 20;
constexpr uint64_t kMaxRecordBytes = 64 << 20;
constexpr TimeNs kBetweenSearches = 200 * kNsPerMs;

// A file that its writer appends to.
struct GrowingFile {
  UniqueFd fd;
  std::string path;
  uint64_t read_to = 0;

  // Hands what was appended to `parse`, which returns how much of it was complete.
  template <class Parse>
  void follow(Parse parse) {
    struct stat st {};
    if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return;
    uint64_t size = std::min(static_cast<uint64_t>(st.st_size), kMaxFileBytes);
    if (size < read_to) read_to = 0;  // begun anew
    uint64_t want = kReadBytes;
    while (read_to < size) {
      std::string bytes(std::min(want, size - read_to), '\0');
      ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(read_to));
      if (got <= 0) return;
      bytes.resize(static_cast<size_t>(got));
      size_t used = parse(std::string_view(bytes));
      read_to += used;
      if (used > 0) continue;
      if (read_to + bytes.size() >= size || want >= kMaxRecordBytes)
        return;                // the rest is not yet there
      want = kMaxRecordBytes;  // one record larger than a read
    }
  }
};

// V8 ("JS:*name /path/file.js:10:5"), CPython ("py::name:/path/file.py").
void split_known_names(const std::string& name, model::Location& out) {
  out.function = name;
  if (name.starts_with("py::")) {
    size_t colon = name.find(":/", 4);
    if (colon == std::string::npos) return;
    out.function = name.substr(4, colon - 4);
    out.file = name.substr(colon + 1);
    out.system_name = name;
    return;
  }
  size_t colon = name.find(':');
  bool v8 =
      name.starts_with("JS:") || name.starts_with("LazyCompile:") || name.starts_with("Function:");
  size_t space = name.rfind(' ');
  if (!v8 || space == std::string::npos || space < colon) return;
  std::string where = name.substr(space + 1);
  size_t column = where.rfind(':');
  size_t line =
      column == std::string::npos || column == 0 ? std::string::npos : where.rfind(':', column - 1);
  if (line == std::string::npos) return;
  uint32_t number = 0;
  std::from_chars(where.data() + line + 1, where.data() + column, number);
  std::string function = name.substr(colon + 1, space - colon - 1);
  // A sign tells how far V8 had optimised it; the same function must not scatter over them.
  while (!function.empty() && std::string_view("*~^+").find(function[0]) != std::string_view::npos)
    function.erase(0, 1);
  out.function = function.empty() ? "(anonymous)" : function;
  out.file = where.substr(0, line);
  out.function_line = number;
  out.system_name = name;
}

class JitNames final : public NameSource {
 public:
  JitNames(pid_t pid, std::string module_path, std::shared_ptr<FileAccess> files)
      : pid_(pid), module_path_(std::move(module_path)), files_(std::move(files)) {
    look_for_files();
  }

  std::vector<model::Location> resolve(uint64_t address) override {
    std::lock_guard lock(mutex_);
    const JitFunction* function = find(address);
    model::Location out;
    if (function == nullptr) {
      out.function = offset_name(module_path_, address);
      return {out};
    }
    split_known_names(function->name, out);
    auto after =
        std::upper_bound(function->lines.begin(), function->lines.end(), address,
                         [](uint64_t value, const JitLine& line) { return value < line.address; });
    if (after != function->lines.begin()) {
      out.file = std::prev(after)->file;
      out.line = std::prev(after)->line;
    }
    return {out};
  }

  bool has_name(uint64_t address) override {
    std::lock_guard lock(mutex_);
    return find(address) != nullptr;
  }

  ModuleStatus status() override {
    std::lock_guard lock(mutex_);
    read_on();
    ModuleStatus out;
    out.opened = map_.fd.valid() || dump_.fd.valid();
    out.has_symbols = code_.size() > 0;
    out.has_lines = dump_.fd.valid();
    if (map_.fd.valid()) out.source = "perf map " + map_.path;
    if (dump_.fd.valid()) out.source = "jitdump " + dump_.path;
    if (!out.opened) {
      out.problem = problem_ + "; try: node --perf-basic-prof, python3 -X perf, or a JVM agent";
    } else if (reader_.damaged()) {
      out.problem = dump_.path + " is damaged";
    }
    return out;
  }

 private:
  const JitFunction* find(uint64_t address) {
    if (const JitFunction* function = code_.find(address)) return function;
    read_on();
    return code_.find(address);
  }
  void look_for_files() {
    if (!map_.fd.valid()) problem_ = take(files_->open_perf_map(pid_), map_);
    if (!dump_.fd.valid()) take(files_->open_jit_dump(pid_), dump_);
  }
  // Why not, when there is nothing to take.
  static std::string take(Result<NamedFile> opened, GrowingFile& file) {
    if (!opened) return opened.error().what;
    file.fd = std::move(opened->fd);
    file.path = std::move(opened->path);
    return "";
  }
  void read_on() {
    TimeNs now = monotonic_ns();
    if (now >= next_search_) {
      look_for_files();
      next_search_ = now + kBetweenSearches;
    }
    map_.follow([this](std::string_view bytes) { return read_perf_map(bytes, code_); });
    dump_.follow([this](std::string_view bytes) { return reader_.read(bytes, code_); });
  }

  const pid_t pid_;
  const std::string module_path_;
  const std::shared_ptr<FileAccess> files_;
  std::mutex mutex_;
  GrowingFile map_, dump_;
  std::string problem_;
  JitDumpReader reader_;
  JitCode code_;
  TimeNs next_search_ = 0;
};

}  // namespace

std::unique_ptr<NameSource> make_jit_names(const Options& options, pid_t pid, const model::Module& module) {
  if (pid <= 0) pid = model::pid_of_anonymous_module(module.path).value_or(pid);
  return std::make_unique<JitNames>(pid, module.path, options.files);
}

}  // namespace assay::symbol
