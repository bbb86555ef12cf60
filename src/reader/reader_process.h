// ReaderProcess: one reader at work, seen from Assay's side.
//
// In: questions as bytes. Out: answers. While the reader works it may ask for files; those are
// opened here, for the process that the question is about and with the rights of that process, so
// that a reader under an attacker's control reads nothing that its target could not have read. A
// reader that dies, says nonsense or takes too long is ended, and the next question starts another.
// Threads: one question at a time, callers wait for one another. Failures: an Error that tells how
// the reader ended.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/sandbox/child_process.h"
#include "symbol/file_access.h"

namespace assay::reader {

struct ReaderOptions {
  // A program whose main() calls serve() for kReaderWord; "/proc/self/exe" in Assay itself. Empty:
  // no process is started, and files are read here.
  std::string program;
  bool debuginfod = false;
  // A question is given up after so much of the reader's own CPU time, and after so much time in
  // all.
  int64_t most_cpu_ns = 10'000'000'000;
  int64_t most_wall_ns = 120'000'000'000;
  std::shared_ptr<symbol::FileAccess> files = symbol::direct_file_access();
};

class ReaderProcess {
 public:
  explicit ReaderProcess(ReaderOptions options) : options_(std::move(options)) {}

  // `pid`: the process whose files the reader may ask for meanwhile. The answer is without its
  // first byte, the kind. `generation` is raised whenever the reader that answers is a new one,
  // which knows nothing yet.
  Result<std::string> ask(const std::string& question, const std::vector<int>& descriptors,
                          pid_t pid);
  uint64_t generation() const { return generation_; }
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  Result<void> ensure_started();
  Result<std::string> converse(pid_t pid);
  Result<void> open_for_reader(const std::string& request, pid_t pid);
  Error ended(const Error& reason);

  const ReaderOptions options_;
  std::recursive_mutex mutex_;
  std::optional<os::ChildProcess> child_;
  uint64_t generation_ = 0;
};

}  // namespace assay::reader
