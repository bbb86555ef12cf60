// DeviceReader: asks the process of device_server.h and never waits for it.
//
// ask() sends a question and returns; take() gives the answer when it has come. One question is
// open at a time. A process that dies, says nonsense or is silent for too long is ended, and not
// started again: the capture goes on without figures of devices, and problem() says why. Threads:
// one. Failures: none but that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/devices/device_reading.h"
#include "os/sandbox/child_process.h"

namespace assay::capture {

class DeviceReader {
 public:
  struct Options {
    std::string program;                             // "/proc/self/exe" in Assay itself
    std::vector<std::string> arguments;              // kDevicesWord, and in tests a library
    int64_t longest_silence_ns = 10 * kNsPerSecond;  // a driver that wakes a device takes seconds
  };
  explicit DeviceReader(Options options) : options_(std::move(options)) {}

  void ask(TimeNs now);  // starts the process with the first question
  std::optional<DeviceAnswer> take(TimeNs now);
  const std::string& problem() const { return problem_; }
  std::optional<pid_t> pid() const;

 private:
  void give_up(const std::string& why);

  Options options_;
  std::optional<os::ChildProcess> child_;
  std::optional<TimeNs> asked_;  // the open question
  std::string problem_;
};

}  // namespace assay::capture
