// Names for people: of a frame, a stack or a kind of descriptor. Pure functions of a run.
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

// The function that needed the memory: the innermost one that is neither an allocation function
// nor, if there is any other, an internal function of the standard library. "" for the empty stack.
std::string allocation_site(const Contents& contents, model::StackId stack);

std::string_view fd_kind_name(model::FdKind kind);  // "socket_stream"; "" for none
std::string wait_flags_text(uint16_t flags);        // "open_start,runqueue_known"; "" for none

}  // namespace assay::run
