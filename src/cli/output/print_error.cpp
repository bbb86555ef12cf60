#include <unistd.h>

#include "cli/commands.h"
#include "cli/output/terminal.h"

namespace assay::cli {

int print_error(const Error& error) {
  bool colour = wants_colour(STDERR_FILENO);
  say(stderr, "{}assay: {}{}\n", colour ? "\033[31m" : "", error.what, colour ? "\033[0m" : "");
  if (!error.detail.empty()) say(stderr, "{}\n", error.detail);
  if (!error.remedy.empty()) say(stderr, "  try: {}\n", error.remedy);
  return kFailed;
}

}  // namespace assay::cli
