// A sweep for people and for programs. Pure; the JSON's fields are in docs/sweep.md.
#pragma once

#include <string>

#include "analysis/load/scaling.h"

namespace assay::cli {

struct SweepTitle {
  std::string target;
  std::string load;
  int64_t level_ns = 0;
};

std::string sweep_text(const SweepTitle& title, const analysis::Scaling& scaling);
std::string sweep_json(const SweepTitle& title, const analysis::Scaling& scaling);

}  // namespace assay::cli
