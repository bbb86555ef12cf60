// Names for people: what a frame, a stack or a kind of descriptor is called. Pure functions of a
// run.
#pragma once

#include <string>
#include <string_view>

#include "model/sample.h"
#include "run/reader.h"

namespace assay::run {

// "parse(int)", the innermost function of the frame; "libc.so.6+0x8f2a4" when it has no name; the
// marker's text when it is none.
std::string frame_name(const Contents& contents, model::FrameId frame);

// "root;…;leaf" with inlined functions; "" for the empty stack. A ';' inside a name becomes ':'.
std::string stack_text(const Contents& contents, model::StackId stack);

// Who wanted the memory: the innermost function that is neither one that allocates nor, as long as
// something else follows, the standard library's plumbing. "" for the empty stack.
std::string allocation_site(const Contents& contents, model::StackId stack);

std::string_view fd_kind_name(model::FdKind kind);  // "socket_stream"; "" for none
std::string wait_flags_text(uint16_t flags);        // "open_start,runqueue_known"; "" for none

}  // namespace assay::run
