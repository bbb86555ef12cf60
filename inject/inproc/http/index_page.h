// The page at /debug/pprof/: what there is, what it says now, and the command that reads it.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/http/http_request.h"

namespace assay::inproc {

void write_index_page(const HttpRequest& request, ByteBuffer& out);

}  // namespace assay::inproc
