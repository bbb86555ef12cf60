// run_confined(): the part of a command that reads a run or a foreign file, without privilege.
//
// As os::run_in_worker(), for the commands.
#pragma once

#include <functional>
#include <string>

#include "os/sandbox/worker.h"

namespace assay::session {

using Confinement = os::WorkerRules;

inline Result<int> run_confined(const Confinement& rules, const std::function<int()>& work) {
  return os::run_in_worker(rules, work);
}
inline Result<void> tell_starter(const std::string& text) {
  return os::tell_starter(text);
}

}  // namespace assay::session
