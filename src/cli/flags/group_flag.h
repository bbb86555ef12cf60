// --group NAME: a group that may read what the command writes (base/file_group.h).
#pragma once

#include <CLI/CLI.hpp>

namespace assay::cli {

void add_group_flag(CLI::App& parser);

}  // namespace assay::cli
