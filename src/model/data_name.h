// DataName: the data symbol at an address of a process, for locks that are named variables.
#pragma once

#include <cstdint>
#include <string>

#include "model/ids.h"

namespace assay::model {

struct DataName {
  ProcessId process;
  uint64_t address = 0;  // absolute, as waits have it
  std::string name;      // "table_mutex", "registry+0x10"
};

}  // namespace assay::model
