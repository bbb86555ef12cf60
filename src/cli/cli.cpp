#include "cli/cli.h"

#include <fmt/core.h>

namespace assay::cli {

int run(int, char**) {
  fmt::print("assay {}\n", ASSAY_VERSION);
  return 0;
}

}  // namespace assay::cli
