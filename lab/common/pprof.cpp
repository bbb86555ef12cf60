#include "lab/common/pprof.h"

#include <string>

#include <assay/assay.hpp>

#include "lab/common/process.h"

namespace lab {

void declare_pprof(Options& options) {
  options.number("pprof", 0, 0, 65'530, "port of /debug/pprof/ on loopback; 0: none");
}

void serve_pprof(const Options& options, int offset) {
  long port = options.number("pprof");
  if (port == 0) return;
  if (assay::serve("127.0.0.1:" + std::to_string(port + offset)) < 0)
    die_saying(assay::last_error());
}

}  // namespace lab
