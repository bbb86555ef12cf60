// LoadDriver: load that covers a capture.
//
// In: a URL with the options of `assay load`, or any shell command; perhaps a URL that tells when
// the server is ready. It waits for the server, starts the load in a process of its own, starts a
// command again that ends before the capture does, and always ends it with its whole process group.
// What it measured goes into the run through LoadWindow. Threads: one object, one thread; poll() is
// called a few times a second. Failures: a server that does not answer in time, a URL or options
// that make no sense, load that fails before the capture begins.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/load/load_process.h"
#include "session/load/load_window.h"

namespace assay::session {

struct LoadRequest {
  std::string what;       // empty: no load
  std::string ready_url;  // empty: the load's own URL, or nothing for a command
  int ready_port = 0;     // without a URL to ask: wait until somebody listens here; 0: do not
  int64_t ready_timeout_ns = 30 * kNsPerSecond;
};

class LoadDriver {
 public:
  // Checks what was asked for. `server_gone` tells that waiting has become useless.
  static Result<std::unique_ptr<LoadDriver>> create(const LoadRequest& request);

  Result<void> wait_until_ready(const std::atomic<bool>& stop,
                                const std::function<bool()>& server_gone,
                                const std::function<void()>& while_waiting);
  Result<void> start();
  // Takes what the load says, and starts it again if it ended. False: it has failed for good.
  bool poll(TimeNs now);
  void begin_window(run::Writer& writer, std::atomic<uint32_t>& next_series, TimeNs now);
  // Ends the load and writes its facts.
  void end_window(TimeNs window_begin, TimeNs window_end);

  std::vector<pid_t> pids() const;
  bool is_command() const { return command_; }  // a shell command: its requests are not known
  const std::string& fault() const { return fault_; }  // why it failed
  const LoadWindow& window() const { return window_; }

 private:
  LoadDriver() = default;
  Result<LoadProcess> spawn(const std::vector<std::string>& words,
                            const std::vector<std::string>& extra) const;
  Result<int> probe(const std::vector<std::string>& words, std::string& why) const;
  void take_output();
  void take_line(std::string_view line);
  void measure_group(TimeNs now);
  bool restart(TimeNs now, const os::ExitStatus& status);
  std::string ended(TimeNs window_begin, TimeNs window_end) const;

  LoadRequest request_;
  bool command_ = false;
  std::vector<std::string> words_;        // of a URL: the arguments of assay load
  std::vector<std::string> ready_words_;  // to ask whether the server is ready
  std::optional<LoadProcess> process_;
  LoadWindow window_;
  LoadFacts facts_;
  os::ProcFs proc_;
  std::string pending_;  // an incomplete line, or of a command the end of its output
  std::string fault_;
  TimeNs started_at_ = 0;
  TimeNs next_measure_ = 0;
  int64_t cpu_of_ended_ = 0, cpu_of_current_ = 0;  // of a command's earlier starts, and of this one
  int64_t away_ns_ = 0;                            // of the window without load
  TimeNs away_since_ = 0;                          // 0: it runs
  int quick_failures_ = 0;                         // starts in a row that failed at once
  bool in_window_ = false;
  bool failed_ = false;
};

}  // namespace assay::session
