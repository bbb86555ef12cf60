#include "cli/source_files.h"

#include <algorithm>
#include <map>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file_door.h"

namespace assay::cli {
namespace {

constexpr off_t kLargestFile = 4 << 20;
constexpr size_t kLongestLine = 400;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  auto found = file_door().open(path, Purpose::source);
  struct stat info {};
  if (!found || ::fstat(found->fd.get(), &info) != 0 || info.st_size > kLargestFile) return lines;
  std::string text(static_cast<size_t>(info.st_size), '\0');
  ssize_t got = ::pread(found->fd.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, std::min(end - begin, kLongestLine)));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

SourceLines source_lines(const run::Reader& reader, bool local) {
  auto files = std::make_shared<std::map<std::string, std::vector<std::string>>>();
  return [&reader, files, local](const std::string& file, uint32_t first, uint32_t last) {
    std::vector<std::string> found;
    bool any = false;
    for (uint32_t line = first; line <= last; ++line) {
      auto kept = reader.source_line(file, line);
      found.push_back(kept.value_or("").substr(0, kLongestLine));
      any = any || !found.back().empty();
    }
    if (any || !local) return any ? found : std::vector<std::string>{};
    auto [it, added] = files->try_emplace(file);
    if (added) it->second = lines_of(file);
    const std::vector<std::string>& lines = it->second;
    found.clear();
    for (uint32_t line = first; line <= last && line <= lines.size(); ++line) {
      found.push_back(lines[line - 1]);
    }
    return found;
  };
}

}  // namespace assay::cli
