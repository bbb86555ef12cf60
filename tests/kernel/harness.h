// Runs programs and assay for the tests of tests/kernel, and reads what they print.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace assay::kernel_test {

struct Finished {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs to the end. Never longer than `limit_s`: then it is killed and exit_code is 124.
Finished run(const std::vector<std::string>& argv, int limit_s = 120);

// A program that runs beside the test; killed (SIGKILL) by the destructor if it still does.
class Background {
 public:
  explicit Background(const std::vector<std::string>& argv);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t pid() const { return pid_; }
  std::string read_line();  // from its stdout; blocks
  void signal(int number) const;
  Finished wait();  // the rest of its stdout

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

std::string assay();                            // path of the binary under test
std::string program(const std::string& name);   // path of a program with known behaviour
std::string run_file(const std::string& name);  // a fresh path in the test's temporary directory

// Rows of a query as JSON objects. Fails the test when the query does.
std::vector<nlohmann::json> sql(const std::string& run_path, const std::string& query);
nlohmann::json report(const std::string& run_path);

// What a program of tests/kernel/programs printed about one of its threads.
struct Truth {
  pid_t pid = 0, tid = 0;
  std::string name;
  int64_t begin_ns = 0, wall_ns = 0, cpu_ns = 0, wait_ns = 0, waits = 0;
  int64_t queued_ns = 0;  // on a run queue, by the kernel's own count
};
std::vector<Truth> parse_truths(const std::string& out);

// Whether all threads that a program reported are in the run, and what the run says about missing
// ones.
struct Census {
  size_t told = 0, missing = 0;
  int64_t lost = 0;       // records, of any kind
  int64_t untracked = 0;  // threads that the run says it did not follow
  bool said = false;      // the quality section speaks of loss
  // Nothing is missing, or the run reports at least that much loss.
  bool is_honest() const {
    return missing == 0 || (said && untracked + lost >= static_cast<int64_t>(missing));
  }
};
Census census(const std::string& run_path, const std::vector<Truth>& truths);

// Why tests that need the kernel's events cannot run here; empty when they can. The second: for
// tests that attach.
std::string why_skipped();
std::string why_not_attached();

}  // namespace assay::kernel_test
