#include "cli/output/browser_page.h"

#include <cstdlib>
#include <filesystem>

#include <spawn.h>
#include <unistd.h>

#include "formats/export/output.h"
#include "formats/export/text.h"

extern char** environ;

namespace assay::cli {
namespace {

// Where browsers that are kept apart from the rest of the machine may still read.
std::string folder_for_pages() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* path = std::getenv(name);
    if (path != nullptr && *path == '/' && ::access(path, W_OK) == 0) return path;
  }
  return "/tmp";
}

}  // namespace

Result<void> BrowserPage::open(const std::string& program, const std::string& url) {
  std::string pattern = folder_for_pages() + "/assay-view-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return fail_errno("cannot make {}", pattern);
  directory_ = pattern;
  std::string page = directory_ + "/open.html", escaped = formats::xml_text(url);
  auto written = formats::write_whole(
      page,
      fmt::format("<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
                  "<meta http-equiv=refresh content=\"0;url={}\"><title>assay</title>"
                  "<a href=\"{}\">assay view</a>\n",
                  escaped, escaped));
  if (!written) return written;
  std::string words = program, argument = "file://" + page;
  char* arguments[] = {words.data(), argument.data(), nullptr};
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ);
  if (failed == 0) return {};
  errno = failed;
  return fail_errno("{} could not be started", program);
}

void BrowserPage::remove() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  directory_.clear();
}

BrowserPage::~BrowserPage() {
  remove();
}

}  // namespace assay::cli
