// BpfTables: what the BPF programs need to walk the target's stacks, kept up to date.
//
// In: mappings as AddressSpaces announces them, tables of the Unwinder. Out: each module's table in
// the kernel once, however many processes map it, and each process's list of ranges. Threads: one
// owner, the one of the address spaces. Failures: a table that finds no room is missing in the
// kernel (its stacks are walked from copies); how many is told.
#pragma once

#include <set>
#include <unordered_map>

#include <sys/types.h>

#include "capture/bpf/bpf_programs.h"
#include "capture/bpf/range_lists.h"
#include "capture/bpf/table_pool.h"
#include "evidence/stacks/address_spaces.h"
#include "unwind/table/table.h"
#include "unwind/unwinder.h"

namespace assay::evidence {

class BpfTables {
 public:
  BpfTables(capture::BpfPrograms& programs, AddressSpaces& spaces, unwind::Unwinder& unwinder);

  void changed(pid_t pid) { changed_.insert(pid); }
  void exited(pid_t pid, TimeNs now);
  // Begins to watch a process, with the mappings known of it.
  bool watch(pid_t pid, TimeNs now);
  // Hands the kernel what has changed.
  void refresh(TimeNs now);

  size_t table_bytes() const { return pool_.bytes(); }
  size_t missing_tables() const { return missing_; }

 private:
  uint64_t code_of(pid_t pid, TimeNs now);
  capture::TablePool::Place place_of(const unwind::TableView& table);

  capture::BpfPrograms& programs_;
  AddressSpaces& spaces_;
  unwind::Unwinder& unwinder_;
  capture::TablePool pool_;
  capture::RangeLists lists_;
  std::unordered_map<const unwind::TableHeader*, capture::TablePool::Place> places_;
  std::set<pid_t> changed_;
  size_t missing_ = 0;
};

}  // namespace assay::evidence
