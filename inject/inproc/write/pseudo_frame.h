// Frames that replace an unknown stack: a thread without a stack still counts in a profile of
// threads, under a name that says why. Their addresses are in the first page, which no program
// maps.
#pragma once

#include <cstdint>

namespace assay::inproc {

enum PseudoFrame : uintptr_t { kRunsUnasked = 0x10, kCouldNotBeAsked = 0x20, kDidNotAnswer = 0x30 };

// nullptr: it is no such frame.
inline const char* pseudo_frame_name(uintptr_t address) {
  switch (address) {
    case kRunsUnasked:
      return "[runs, and blocks the signal]";
    case kCouldNotBeAsked:
      return "[could not be asked]";
    case kDidNotAnswer:
      return "[did not answer in time]";
    default:
      return nullptr;
  }
}

}  // namespace assay::inproc
