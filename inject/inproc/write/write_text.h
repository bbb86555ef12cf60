// Profiles as text for people (debug=1, debug=2), in the layouts of Go's runtime/pprof.
#pragma once

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/write/named_code.h"
#include "inject/inproc/write/profile.h"
#include "inject/inproc/cpu/thread_stacks.h"

namespace assay::inproc {

// "--- mutex:" and "--- contention:" (block).
void write_contention_text(const Profile& profile, const NamedCode& code, const char* title,
                           ByteBuffer& out);
// "threadcreate profile: total N".
void write_count_text(const Profile& profile, const NamedCode& code, const char* title,
                      ByteBuffer& out);
// "heap profile: …", as gperftools writes it, with names as comments.
void write_heap_text(const Profile& profile, const NamedCode& code, ByteBuffer& out);
// Every thread with its state and stack.
bool write_thread_text(const ThreadStack* stacks, size_t count, Arena& arena, ByteBuffer& out);

}  // namespace assay::inproc
