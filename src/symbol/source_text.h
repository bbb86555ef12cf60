// SourceText: lines of source files, for showing what a hot address does.
//
// In: file names and line numbers as debug information gives them. Out: the line's text, cleaned of
// control characters and cut to a sane length. Files are read as the target sees them first, then
// the host's; only regular text files up to a size, and only so many. Relative names cannot be
// found. Threads: locks itself. Failures: what cannot be read is absent.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace assay::symbol {

struct SourceLimits {
  uint64_t max_file_bytes = 8 << 20;
  size_t max_files = 512;
  size_t max_line_bytes = 400;
};

class SourceText {
 public:
  // `pid` is the process in whose root files are looked for; 0: the host's alone.
  explicit SourceText(pid_t pid = 0, SourceLimits limits = {}) : pid_(pid), limits_(limits) {}

  std::optional<std::string> source_line(const std::string& file, uint32_t line);
  // Lines first … last, both included, as far as the file has them.
  std::vector<std::string> source_lines(const std::string& file, uint32_t first, uint32_t last);

 private:
  struct File {
    std::string text;
    std::vector<size_t> starts;  // of lines; one more at the end
  };
  const File* open(const std::string& file);
  std::string clean(const File& file, size_t line) const;

  const pid_t pid_;
  const SourceLimits limits_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<File>> files_;  // null: cannot be read
};

}  // namespace assay::symbol
