// A LoadResult for people and for programs. Pure; the JSON's fields are in docs/load.md.
#pragma once

#include <string>

#include "load/load_options.h"

namespace assay::load {

std::string result_text(const LoadResult& result);
std::string result_json(const LoadResult& result);

}  // namespace assay::load
