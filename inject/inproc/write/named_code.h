// NamedCode: every code address of a profile, with its module and name, in order of address.
//
// Made once per profile that is written; lives in the same arena. Not async-signal-safe.
#pragma once

#include "inject/inproc/write/profile.h"
#include "inject/inproc/write/resolve_names.h"

namespace assay::inproc {

struct NamedCode {
  ModuleMap modules;
  CodeAddress* addresses = nullptr;
  size_t count = 0;

  // False: no memory, or /proc cannot be read.
  bool make(const Profile& profile, Arena& arena);
  const CodeAddress* find(uintptr_t address) const {
    return find_address(addresses, count, address);
  }
};

}  // namespace assay::inproc
