// How a program was built, and whether the file on disk is still the one that runs.
//
// In: an open ELF file, or a process; out: plain values read from its headers, notes, symbols and
// the producer strings of its DWARF. What is not recorded in the file is told as unknown, never
// guessed. Threads: pure functions; one fd is read by one thread at a time. Failures: a file that
// is no ELF is an Error; anything cut off, oversized or inconsistent inside it leaves its field
// empty. Work is bounded: the first kMaxUnits compilation units, kMaxSymbols symbols, and
// compressed debug sections only up to kMaxInflatedBytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "os/process/procfs.h"

namespace assay::os {

inline constexpr uint32_t kMaxUnits = 2'000;
inline constexpr size_t kMaxSymbols = 400'000;
inline constexpr uint64_t kMaxInflatedBytes = uint64_t{64} << 20;

enum class Linkage : uint8_t { unknown, pie, position_dependent, static_pie, static_exe, shared };
enum class Optimisation : uint8_t { unknown, optimised, debug };
enum class FramePointers : uint8_t { unknown, kept, omitted };

// What one DW_AT_producer says: "GNU C++17 12.2.0 -mtune=generic -g -O2 -fno-omit-frame-pointer".
struct Producer {
  std::string compiler;  // "GNU C++17 12.2.0"
  std::string flags;     // "-mtune=generic -g -O2 …"; empty when the compiler records none
  Optimisation optimisation = Optimisation::unknown;
  FramePointers frame_pointers = FramePointers::unknown;
  bool assembler = false;  // hand-written code: says nothing of how the program was compiled
};
Producer parse_producer(std::string_view text);

struct BinaryFacts {
  std::string build_id;  // lowercase hex
  Linkage linkage = Linkage::unknown;
  bool has_symtab = false, has_dynsym = false;
  bool has_debug_info = false;
  bool has_debug_link = false;  // the debug information is in another file
  bool stripped() const { return !has_symtab; }

  uint32_t units_read = 0;  // compilation units that told their producer, assembler left out
  uint32_t units_optimised = 0, units_debug = 0;
  std::string compiler;  // of most units
  std::string flags;     // of most units of that compiler
  // By the majority of the units whose flags are recorded.
  Optimisation optimisation = Optimisation::unknown;
  FramePointers frame_pointers = FramePointers::unknown;
  std::string limit;  // why DWARF was not read to its end, "" when it was

  std::vector<std::string> sanitizers;  // "address", "thread", "undefined", "memory", "leak", …
  bool debug_containers = false;        // built with _GLIBCXX_DEBUG
};
Result<BinaryFacts> read_binary_facts(int fd);

// The file a process runs against the file that now has its name.
struct RunningImage {
  std::string path;           // without " (deleted)"
  bool deleted = false;       // no file has the name any more
  bool replaced = false;      // another file has it: rebuilt or upgraded after the process started
  std::string build_id;       // of what runs
  std::string file_build_id;  // of what is on disk now
};
Result<RunningImage> read_running_image(pid_t pid, const ProcFs& proc = ProcFs());

const char* linkage_name(Linkage linkage);
const char* optimisation_name(Optimisation optimisation);
const char* frame_pointers_name(FramePointers frame_pointers);

}  // namespace assay::os
