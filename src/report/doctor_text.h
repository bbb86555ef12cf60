// Checks as terminal text: one line each, and below those that are not ok their cost and remedy.
#pragma once

#include <string>
#include <vector>

#include "model/check.h"

namespace assay::report {

const char* check_status_name(model::CheckStatus status);  // "ok", "limited", "missing"

std::string doctor_text(const std::vector<model::Check>& checks, bool colour);

// {"ok": true, "checks": [{"name", "status", "detail", "cost", "remedy"}]}, with "log" where there is one; ok: nothing is missing.
std::string doctor_json(const std::vector<model::Check>& checks);

}  // namespace assay::report
