// LaunchedProcess: starts a command stopped, so that events can be attached before its first
// instruction, and passes on how it ended.
//
// start() forks; the child waits on a pipe. release() lets it execvp() and reports a failed exec as
// an Error (command not found, not executable). Between the two the pid exists and runs none of the
// command. If Assay dies before release the child notices and exits; if it dies later, the command
// goes on undisturbed.
//
// Signals and terminal: the command gets a process group of its own, so that Ctrl-C reaches Assay
// alone, which ends the capture and decides what becomes of the command (terminate()). stdin,
// stdout and stderr are inherited (stdout goes to stderr where the extras say so). A command that
// reads from the terminal is given its foreground as a shell would (poll() and wait() notice); from
// then on Ctrl-C reaches the command, whose end ends the capture. Signals that Assay handles or
// blocks are at their defaults in the command.
//
// Threads: one object, one thread. The destructor leaves a released command running and ends an
// unreleased child.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::os {

struct ExitStatus {
  bool signalled = false;
  int value = 0;  // exit code, or the signal's number

  int exit_code() const { return signalled ? 128 + value : value; }  // as a shell gives it
};

// What a command gets besides what Assay itself has.
struct LaunchExtras {
  std::vector<std::string> environment = {};  // "NAME=value": set, or replaced
  std::vector<int> inherited_fds = {};        // kept open over exec, under the same numbers
  bool output_to_stderr = false;              // what it writes to stdout goes there, too
};

class LaunchedProcess {
 public:
  static Result<LaunchedProcess> start(const std::vector<std::string>& argv,
                                       const LaunchExtras& extras = {});

  LaunchedProcess(LaunchedProcess&& other) noexcept;
  LaunchedProcess& operator=(LaunchedProcess&& other) noexcept;
  ~LaunchedProcess();

  pid_t pid() const { return pid_; }
  // Runs the command. On an Error the child has ended; its exit_code() is 127 or 126 as in a shell.
  Result<void> release();
  std::optional<ExitStatus> poll();  // nullopt: still running
  ExitStatus wait();                 // until it ends
  // SIGTERM to the command's process group, SIGKILL to it when `grace_ns` have passed.
  ExitStatus terminate(int64_t grace_ns);

 private:
  LaunchedProcess() = default;
  std::optional<ExitStatus> reap(int options);
  void give_terminal_if_wanted(int stop_signal);
  void take_terminal_back();
  void abandon();

  pid_t pid_ = 0;
  bool released_ = false;
  bool gave_terminal_ = false;
  UniqueFd release_pipe_;  // write end: one byte runs the command, end of file ends the child
  UniqueFd exec_error_;    // read end: errno of a failed exec, end of file when it worked
  std::string command_;
  std::optional<ExitStatus> status_;
};

}  // namespace assay::os
