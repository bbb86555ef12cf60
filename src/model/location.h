// Location: the name of a frame. One frame has several when functions were inlined there.
#pragma once

#include <cstdint>
#include <string>

namespace assay::model {

struct Location {
  std::string function;        // demangled, for people
  std::string system_name;     // as in the symbol table; empty when equal to function
  std::string file;            // source file; empty when unknown
  uint32_t line = 0;           // line of the call or sample; 0 when unknown
  uint32_t function_line = 0;  // line where the function begins; 0 when unknown
  bool inlined = false;        // its caller is the next location of the same frame
};

}  // namespace assay::model
