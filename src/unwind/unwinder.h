// Unwinder: a raw sample and the target's call-frame information become a complete user stack, or a
// stated reason why not.
//
// In: registers, the copied part of the user stack, the kernel's frame-pointer chain, and the
// address space at that moment, from a capture. Out: return addresses, leaf first, and how the walk
// ended. Threads: one Unwinder belongs to one thread; tables are shared read-only between
// Unwinders. Failures: none; a rule it cannot apply ends the walk with a StackEnd. Two
// kinds of frames are not certain, and the result says so: those found by frame pointers because
// code has no call-frame information (`used_frame_pointers`), and outer frames taken from an
// earlier stack of the thread because the copy was too short (`joined`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "model/address_space.h"
#include "model/module.h"
#include "model/registers.h"
#include "model/stack.h"

namespace assay::unwind {

class Table;

struct RawStack {
  pid_t pid = 0;
  pid_t tid = 0;
  model::UserRegisters registers;
  std::span<const std::byte> copy;     // bytes from registers.sp() upwards; may be empty
  std::span<const uint64_t> fp_chain;  // the kernel's frame-pointer walk, leaf first; may be empty
};

struct UserFrame {
  uint64_t pc = 0;                // absolute: the sampled ip, or a return address
  bool is_return_address = true;  // look up pc − 1; false for the leaf and for interrupted frames
};

struct UserStack {
  std::vector<UserFrame> frames;  // leaf first
  model::StackEnd end = model::StackEnd::complete;
  bool used_frame_pointers = false;  // some frames were found by frame pointer for lack of CFI
  bool joined = false;               // its outer part comes from an earlier stack of the thread
  bool popped_call = false;  // a call to an address without code: caller from the stack's top
  uint32_t copy_needed = 0;  // bytes of the copy that were read; when it was too short, the
                             // least that would have let the walk go on
};

// Counts of how walks went, for the quality section and for choosing the size of the stack copy.
struct UnwindStats {
  uint64_t stacks = 0;
  uint64_t complete = 0;
  uint64_t joined = 0;
  uint64_t cache_hits = 0;
  uint64_t ended[model::kStackEndCount] = {};
};

// Makes the bytes of a module's table from its open file.
using BuildTable = std::function<Result<std::vector<std::byte>>(int fd, const std::string& build_id)>;

class Unwinder {
 public:
  // `cache_dir` keeps built tables between runs; empty: no cache on disk. `build` null: files are read here.
  static std::unique_ptr<Unwinder> create(const std::string& cache_dir, BuildTable build = nullptr);
  virtual ~Unwinder() = default;

  // Makes the module's table ready, once for each module. `pid` and `mapping` say where its file
  // can be opened while the process lives; called when a mapping is first seen. Cheap when the
  // table is in the cache of an earlier run.
  virtual void prepare(pid_t pid, const model::Mapping& mapping, const model::Module& module) = 0;
  // The result is valid until the next call.
  virtual const UserStack& unwind(const RawStack& raw, const model::AddressSpace& space) = 0;
  virtual void forget_thread(pid_t tid) = 0;
  // The table of a prepared module; null when it has none. Lives as long as the Unwinder.
  virtual std::shared_ptr<const Table> table_of(model::ModuleId module) const = 0;
  virtual const UnwindStats& stats() const = 0;
};

}  // namespace assay::unwind
