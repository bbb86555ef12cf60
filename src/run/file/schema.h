// The tables of a run file and its version. docs/run-format.md is the specification.
#pragma once

#include <cstdint>

namespace assay::run {

inline constexpr int64_t kApplicationId = 0x41534159;  // "ASAY"
inline constexpr int64_t kFormatVersion = 1;           // PRAGMA user_version

// Every CREATE TABLE, INDEX and VIEW of a new run, and the two pragmas that mark it.
extern const char* const kSchemaSql;

}  // namespace assay::run
