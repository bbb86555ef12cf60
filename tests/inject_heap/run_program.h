// Runs a program with chosen additions to its environment and waits for it, with a time limit.
#pragma once

#include <string>
#include <vector>

namespace assay::inject {

struct Finished {
  int status = -1;  // as waitpid has it; -1: it had to be killed
  std::string out;
};

Finished run_program(const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment);

struct SiteTruth {
  std::string name;
  uint64_t begin = 0, end = 0;
  uint64_t objects = 0, bytes = 0, live_objects = 0, live_bytes = 0;
  double inverse = 0, live_inverse = 0;  // sums of 1 / size
  double smallest = 1, largest = 1;      // sizes
};

// The "site" lines of a program's output.
std::vector<SiteTruth> sites_in(const std::string& out);

// An empty folder of this test process's own.
std::string test_folder();

}  // namespace assay::inject
