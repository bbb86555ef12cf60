#include <algorithm>
#include <string>
#include <string_view>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/output/terminal.h"
#include "report/printable.h"

namespace assay::cli {

namespace {

// Messages quote names, paths and words of targets and files: what a terminal would obey is shown
// instead. Line by line, as our own messages may have several.
std::string shown(std::string text) {
  std::ranges::replace(text, '\t', ' ');
  std::string lines;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) lines += '\n';
    lines += report::printable(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

int print_error(const Error& error) {
  bool colour = wants_colour(STDERR_FILENO);
  say(stderr, "{}assay: {}{}\n", colour ? "\033[31m" : "", shown(error.what),
      colour ? "\033[0m" : "");
  if (!error.detail.empty()) say(stderr, "{}\n", shown(error.detail));
  if (!error.remedy.empty()) say(stderr, "  try: {}\n", shown(error.remedy));
  return kFailed;
}

}  // namespace assay::cli
