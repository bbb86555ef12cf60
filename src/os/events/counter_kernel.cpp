#include "os/events/counter_kernel.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::os {
namespace {

class RealCounterKernel final : public CounterKernel {
 public:
  Result<UniqueFd> open(const perf_event_attr& attr, pid_t tid, int leader) override {
    perf_event_attr wanted = attr;
    wanted.size = sizeof wanted;
    wanted.inherit = 1;
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int fd = static_cast<int>(
        ::syscall(SYS_perf_event_open, &wanted, tid, -1, leader, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0) return fail_errno("perf_event_open for thread {}", tid);
    return UniqueFd(fd);
  }

  Result<CounterReading> read(int fd) override {
    uint64_t words[3] = {};
    if (::read(fd, words, sizeof words) != static_cast<ssize_t>(sizeof words))
      return fail_errno("cannot read a counter");
    return CounterReading{words[0], words[1], words[2]};
  }

  Result<void> filter(int fd, const char* expression) override {
    if (::ioctl(fd, PERF_EVENT_IOC_SET_FILTER, expression) != 0)
      return fail_errno("cannot count only {}", expression);
    return {};
  }
};

}  // namespace

CounterKernel& real_counter_kernel() {
  static RealCounterKernel kernel;
  return kernel;
}

}  // namespace assay::os
