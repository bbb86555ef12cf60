// Counts as a table for the terminal and as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/counters.h"
#include "model/top_down.h"
#include "report/text/style.h"

namespace assay::report {

struct SyscallShown {
  std::string name;
  uint64_t calls = 0;
};

// What is counted besides, of the whole time only.
struct CountedBesides {
  model::TopDownCounts top_down;
  uint64_t syscalls = 0;
  std::vector<SyscallShown> by_syscall;  // most first
  std::string syscall_source;            // how they were counted; or why not
};

struct CountersShown {
  double seconds = 0;
  const model::Counts& counts;
  uint64_t requests = 0;  // answered meanwhile; 0: load was not measured
  const CountedBesides* besides = nullptr;
};

// Rows of counts with their rates and, where groups took turns, the share of the time; then ratios.
std::string render_counters_text(const CountersShown& shown, const Style& style);
// Top-down shares of the issue slots; system calls by name.
std::string render_besides(const CountersShown& shown, const Style& style);
// Which events could not be counted, by reason.
std::string render_uncounted(const model::Counts& counts, const Style& style);
// {"counters": {...}, "ratios": {...}}
std::string render_counters_json(const CountersShown& shown);
std::string_view counter_name(model::CounterId id);

}  // namespace assay::report
