// confined(): runs the part of a command that reads runs or foreign files, without privilege.
//
// `work` happens in another process (os/sandbox/worker.h): it prints and asks for files as usual,
// but what it changes in memory is lost. Out: its exit code; an Error is printed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session/confined/confined.h"

namespace assay::cli {

int confined(const session::Confinement& rules, const std::function<int()>& work);

// For reading these runs and writing that file; an empty name or "-" is standard output.
session::Confinement reading(const std::vector<std::string>& runs, const std::string& output = "");

}  // namespace assay::cli
