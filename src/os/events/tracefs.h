// Reads a tracepoint's id and field offsets from tracefs, wherever it is mounted.
//
// Where it is not mounted and we are allowed to, a child in a mount namespace of its own mounts it,
// reads the one file and ends: nothing changes for anyone else on the machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::os {

struct TracepointField {
  uint32_t offset = 0;
  uint32_t size = 0;
};

struct Tracepoint {
  uint64_t id = 0;  // perf_event_attr.config for PERF_TYPE_TRACEPOINT
  std::map<std::string, TracepointField> fields;
};

// `name` as "sched/sched_waking".
Result<Tracepoint> read_tracepoint(const std::string& name);

// Parses the text of a tracepoint's format file.
Result<Tracepoint> parse_tracepoint_format(const std::string& text);

// Where tracefs is mounted; "" when it is not.
std::string tracefs_mount_point();

}  // namespace assay::os
