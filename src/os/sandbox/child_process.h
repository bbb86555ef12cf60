// ChildProcess: a process of our own program that does one job at the other end of a Channel.
//
// Started anew from the program's file, so that it shares no memory and no descriptor with this
// process but its end of the channel, which is descriptor 3. Ends when this object goes, at the
// latest. Threads: one at a time; other threads of the caller do no harm. Failures: an Error when
// it cannot be started.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "os/sandbox/channel.h"

namespace assay::os {

inline constexpr int kChannelDescriptor = 3;

class ChildProcess {
 public:
  // `program`: the file to run, "/proc/self/exe" for this program; `arguments` without the name.
  static Result<ChildProcess> start(const std::string& program,
                                    const std::vector<std::string>& arguments);
  ~ChildProcess() { end(); }
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  // CPU time that it has used, in ns; -1 when it is not known.
  int64_t cpu_ns() const;
  // Kills it and waits; says in words how it ended, if it had ended by itself before.
  std::string end();

 private:
  ChildProcess(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_ = -1;
  Channel channel_;
};

}  // namespace assay::os
