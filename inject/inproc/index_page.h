// The page at /debug/pprof/: what there is, what it says now, and how to read it with which
// command.
#pragma once

#include "inject/inproc/byte_buffer.h"

namespace assay::inproc {

void write_index_page(ByteBuffer& out);

}  // namespace assay::inproc
