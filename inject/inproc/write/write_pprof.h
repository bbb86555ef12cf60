// Writes a Profile as pprof's profile.proto, gzipped, with mappings and build ids, functions and
// labels, so that readers need no other file.
//
// Apart from src/formats/pprof because it runs inside the program that it profiles: it may not call
// malloc (the heap profile would hold itself, and the allocator's lock may be taken), so it writes
// into an Arena of its own pages, and it links neither the run file nor C++ containers.
// In: a profile whose stacks belong to this process. Out: bytes appended to `out`. Failures: false
// when memory is short; `out` is then invalid. Follows github.com/google/pprof's
// proto/profile.proto.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/write/named_code.h"
#include "inject/inproc/write/profile.h"

namespace assay::inproc {

bool write_pprof(const Profile& profile, Arena& arena, ByteBuffer& out);
bool gzip(const ByteBuffer& from, ByteBuffer& out);

}  // namespace assay::inproc
