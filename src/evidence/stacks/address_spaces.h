// AddressSpaces: what is mapped where in every process of the target, at the time of the record
// being processed; and the one table of modules.
//
// In: /proc/PID/maps at the start and on a miss, then MMAP, FORK and EXEC records in time order.
// Out: lookups for unwinding and naming; each module is announced once, while a process that has it
// lives, so that its file can be opened even if everything is gone by the end. Threads: one owner.
// Failures: a process that cannot be read has an empty space; its addresses are reported as
// unknown.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "capture/perf/record.h"
#include "model/address_space.h"
#include "model/module.h"
#include "os/process/procfs.h"

namespace assay::evidence {

class AddressSpaces {
 public:
  // A mapping that has just been seen, with its module; `new_module` on the module's first sight.
  using Announce =
      std::function<void(pid_t pid, const model::Mapping&, const model::Module&, bool new_module)>;

  AddressSpaces(const os::ProcFs& proc, Announce announce);

  void load(pid_t pid);
  void mapped(pid_t pid, const capture::MmapRecord& record);
  void forked(pid_t parent, pid_t child);
  void executed(pid_t pid);  // a new image: MMAP records follow
  void exited(pid_t pid);

  bool knows(pid_t pid) const { return spaces_.contains(pid); }
  const model::AddressSpace& of(pid_t pid) { return spaces_[pid].space; }
  // The mapping of an address; reads /proc/PID/maps anew when it is not known, not too often.
  const model::Mapping* find(pid_t pid, uint64_t address, TimeNs now);

  const model::ModuleTable& modules() const { return modules_; }
  model::ModuleId kernel() const { return kernel_; }
  model::ModuleId marker() const { return marker_; }
  model::ModuleId unknown_memory(pid_t pid);

 private:
  struct Space {
    model::AddressSpace space;
    TimeNs reloaded_at = INT64_MIN / 2;
  };

  void add(pid_t pid, uint64_t start, uint64_t end, uint64_t offset, const std::string& path,
           const std::string& build_id);
  model::ModuleId intern(model::ModuleKind kind, const std::string& path,
                         const std::string& build_id, bool& is_new);
  std::string build_id_of(pid_t pid, uint64_t start, uint64_t end, const std::string& path,
                          const std::string& file_key);

  const os::ProcFs& proc_;
  Announce announce_;
  model::ModuleTable modules_;
  model::ModuleId kernel_;
  model::ModuleId marker_;
  std::unordered_map<pid_t, Space> spaces_;
  std::unordered_map<std::string, std::string> build_ids_;  // by device, inode and path
};

}  // namespace assay::evidence
