// UsualSuspect: a kind of CPU cost that people suspect first, and that a report clears by name
// where the numbers do. A category rule says by `suspect` which one it is part of; another name is
// an error at load. The order is the report's. Pure; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/kind_table.h"

namespace assay::analysis {

enum class UsualSuspect : uint8_t {
  allocation,
  hash_tables,
  serialisation,
  strings,
  logging,
  system_calls,
  lock_operations,
  tls,
  compression,
  completion_queue,
  garbage_collection,
};
inline constexpr size_t kUsualSuspectCount =
    static_cast<size_t>(UsualSuspect::garbage_collection) + 1;

struct UsualSuspectRow {
  UsualSuspect kind;
  std::string_view id;    // in rule files
  std::string_view name;  // in reports
};

inline constexpr std::array<UsualSuspectRow, kUsualSuspectCount> kUsualSuspects{{
    {UsualSuspect::allocation, "allocation", "memory allocation"},
    {UsualSuspect::hash_tables, "hash-tables", "maps and hash tables"},
    {UsualSuspect::serialisation, "serialisation", "serialisation (protobuf, JSON)"},
    {UsualSuspect::strings, "strings", "strings"},
    {UsualSuspect::logging, "logging", "logging"},
    {UsualSuspect::system_calls, "system-calls", "system calls and the kernel's network"},
    {UsualSuspect::lock_operations, "lock-operations", "lock operations on the CPU"},
    {UsualSuspect::tls, "tls", "TLS"},
    {UsualSuspect::compression, "compression", "compression"},
    {UsualSuspect::completion_queue, "completion-queue", "the gRPC completion queue"},
    {UsualSuspect::garbage_collection, "garbage-collection", "garbage collection"},
}};
static_assert(is_complete(kUsualSuspects, kUsualSuspectCount));

}  // namespace assay::analysis
