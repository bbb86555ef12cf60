// Writes a Profile as pprof's profile.proto, gzipped and complete in itself: mappings with build
// ids, functions, labels.
//
// In: a profile whose stacks belong to this process. Out: bytes appended to `out`.
// Failures: false when memory is short; `out` is then of no use. Follows github.com/google/pprof's
// proto/profile.proto.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/write/named_code.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {

bool write_pprof(const Profile& profile, Arena& arena, ByteBuffer& out);
bool gzip(const ByteBuffer& from, ByteBuffer& out);

}  // namespace assay::inproc
