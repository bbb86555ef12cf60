// Which process of a tree uses the environment's switches.
//
// The environment is inherited, so a process that uses the switches leaves a mark in it, in
// ASSAY_PID: its pid and a secret, with which a process that it starts can prove that it was
// started by it (see port_handover.h). Read once, when the library is loaded.
#pragma once

#include <string_view>

namespace assay::inproc {

enum class Lineage {
  first,     // no process before this one
  repeated,  // libassay is in this program twice (linked as libassay.a, and preloaded): the other
             // copy
  executed,  // this process used them before, in a program that then executed this one
  started,   // a process that uses them started this one
};

struct ProcessMark {
  Lineage lineage = Lineage::first;
  // Its files have its pid in their names: another process writes the files without.
  bool is_inherited = false;
  char secret[17] = "";
};

// Leaves this process's mark, unless the lineage is `repeated`.
ProcessMark take_process_mark();

// "PID.SECRET.INHERITED". False: it is none.
struct MarkParts {
  int pid = 0;
  bool is_inherited = false;
  char secret[17] = "";
};
bool parse_mark(std::string_view text, MarkParts& out);

}  // namespace assay::inproc
