// The page at /debug/pprof/: the profiles, their current numbers, and the commands that read them.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/http/http_request.h"

namespace assay::inproc {

void write_index_page(const HttpRequest& request, ByteBuffer& out);

}  // namespace assay::inproc
