// Names of code addresses, from the symbol tables of the modules they are in.
//
// In: addresses, sorted and unique, of code (return addresses already less one). Out: function
// names in the caller's arena. A module's symbol table is read once as a stream and compared with
// the addresses, so memory stays small for programs with millions of symbols. Names are demangled
// where the host has a C++ runtime (its __cxa_demangle), otherwise they stay mangled. Not
// async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/inproc/write/module_map.h"

namespace assay::inproc {

struct CodeAddress {
  uintptr_t address = 0;
  Module* module = nullptr;
  const char* name = nullptr;         // for people; nullptr: unknown
  const char* system_name = nullptr;  // as in the symbol table
  uintptr_t function_start = 0;       // run-time address of the function's first byte
};

// Sorts and makes unique in place; the number that is left.
size_t sort_addresses(CodeAddress* addresses, size_t count);
void resolve_names(CodeAddress* addresses, size_t count, ModuleMap& modules, Arena& arena);
// The entry for `address`; nullptr: it was not among them.
const CodeAddress* find_address(const CodeAddress* addresses, size_t count, uintptr_t address);

}  // namespace assay::inproc
