// Options of every capture, of time or of the heap: the target, the duration, and the run file.
#pragma once

#include <cstdint>
#include <string>

#include "target/target.h"

namespace assay::session {

// This program itself, as long as it runs.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

struct CaptureOptions {
  target::TargetSpec target;
  std::string target_text;  // as the user wrote it, for the run's header
  std::string command_line;
  int64_t duration_ns = 30'000'000'000;  // 0: until stopped or the target ends
  std::string output;
  bool overwrite = false;
  bool source = true;       // keep the text of hot source lines in the run
  bool debuginfod = false;  // ask the servers in DEBUGINFOD_URLS for missing debug files
  // The program that becomes the process which reads the target's files (reader/serve.h); empty: they are read in
  // this process, with all of its rights.
  std::string reader_program;
  // Once events are open, the process keeps only what a capture needs (os/sandbox/capture_rights.h), for good.
  bool gives_up_rights = false;
  std::string cache_dir;    // unwind tables and symbols by build id; empty: none
};

}  // namespace assay::session
