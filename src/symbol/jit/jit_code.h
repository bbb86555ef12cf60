// JitCode: functions that a process generated while it ran, by address.
//
// In: the text of a perf map ("START SIZE NAME" in hex, one a line) or the records of a jitdump
// file (Linux' tools/perf/Documentation/jitdump-specification.txt), as much of them as has been
// written so far; what is incomplete is left for the next call. Out: the function at an address.
// Code that is generated over older code replaces it. Sizes and counts are limited. Threads: none;
// guarded by its owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbol {

struct JitLine {
  uint64_t address = 0;
  uint32_t line = 0;
  std::string file;
};

struct JitFunction {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string name;
  std::vector<JitLine> lines;  // sorted by address; empty: unknown
};

class JitCode {
 public:
  void add(JitFunction function);
  void move(uint64_t from, uint64_t to);
  const JitFunction* find(uint64_t address) const;
  size_t size() const { return by_start_.size(); }

 private:
  std::map<uint64_t, JitFunction> by_start_;
};

// Each reads the records at the front of `bytes` and returns how many bytes of it were used.
size_t read_perf_map(std::string_view bytes, JitCode& out);

class JitDumpReader {
 public:
  size_t read(std::string_view bytes, JitCode& out);
  bool damaged() const { return damaged_; }

 private:
  void read_record(uint32_t id, std::string_view body, JitCode& out);

  bool header_read_ = false;
  bool damaged_ = false;
  std::map<uint64_t, std::vector<JitLine>>
      pending_lines_;  // by code address, for the next code record
};

}  // namespace assay::symbol
