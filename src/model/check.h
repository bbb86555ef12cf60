// Check: one precondition of a good capture, as found on this machine.
#pragma once

#include <cstdint>
#include <string>

namespace assay::model {

enum class CheckStatus : uint8_t {
  ok = 0,
  limited = 1,  // something works, and the cost says what does not
  missing = 2,  // nothing works
};

struct Check {
  std::string name;  // "hardware counters"
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // what was found
  std::string cost;    // what a capture loses by it; empty when nothing
  std::string remedy;  // exact command or step; empty when there is none or none is needed
  std::string log = {};  // long text behind `detail`, shown on request: a verifier's log
};

}  // namespace assay::model
