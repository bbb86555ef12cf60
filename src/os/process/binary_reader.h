// BinaryReader: who parses the program files of targets for their build ids and facts.
//
// A file of a target is hostile, so a capture has it parsed by a process without privilege
// (reader/remote_binaries.h); others parse it themselves. The default parses here.
// set_binary_reader() is called before threads ask. Threads: any. Failures: the parser's.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/process/binary_facts.h"

namespace assay::os {

class BinaryReader {
 public:
  virtual ~BinaryReader() = default;
  virtual Result<std::string> build_id(int fd) = 0;
  virtual Result<BinaryFacts> facts(int fd) = 0;
};

BinaryReader& binary_reader();
// nullptr: parsed here. `reader` must outlive its use.
void set_binary_reader(BinaryReader* reader);

// The program of a process, if that process itself may read it.
Result<UniqueFd> open_program(pid_t pid, const std::string& proc_root = "/proc");
// The file that a process finds at this path, if it may read it.
Result<UniqueFd> open_as_seen(pid_t pid, const std::string& path, const std::string& proc_root);

}  // namespace assay::os
