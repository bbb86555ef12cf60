// The pages under /pprof/, in gperftools' formats: profile, heap, contention, cmdline (and symbol).
#pragma once

#include <string_view>

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

void answer_gperftools(HttpExchange& exchange, std::string_view name);

}  // namespace assay::inproc
