// Why a capture ended.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::session {

enum class EndReason : uint8_t { time, interrupted, target_exited, write_failed };

// As the run file has it (model::RunInfo::end_reason).
constexpr std::string_view end_reason_text(EndReason reason) {
  switch (reason) {
    case EndReason::time:
      return "time";
    case EndReason::interrupted:
      return "interrupted";
    case EndReason::target_exited:
      return "target exited";
    case EndReason::write_failed:
      return "write failed";
  }
  return "";
}

}  // namespace assay::session
