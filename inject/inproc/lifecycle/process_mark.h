// Who in a tree of processes has taken the environment's switches.
//
// The environment is inherited, so a process that takes the switches leaves a mark in it, in
// ASSAY_PID: its number and a secret, by which a process that it starts can show that it is one
// (see port_handover.h). Read once, when the library is loaded.
#pragma once

#include <string_view>

namespace assay::inproc {

enum class Lineage {
  first,     // nobody before this one
  repeated,  // libassay is in this program twice (linked as libassay.a, and preloaded): the other
             // copy
  executed,  // this process took them before, in a program that then executed this one
  started,   // a process that has taken them started this one
};

struct ProcessMark {
  Lineage lineage = Lineage::first;
  // Its files carry its number: another process writes those without.
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
