#include "capture/heap/entry_watch.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "os/events/perf_event.h"

namespace assay::capture {

Result<void> EntryWatch::add(pid_t tid) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = HW_BREAKPOINT_X;
  attr.bp_addr = address_;
  attr.bp_len = sizeof(long);
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.disabled = 1;
  os::PerfKernel& kernel = os::real_perf_kernel();
  auto event = kernel.open(attr, tid, -1);
  if (!event) return std::unexpected(event.error());
  f_owner_ex owner{F_OWNER_TID, tid};
  int fd = event->get();
  if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETSIG, signal_) != 0 ||
      fcntl(fd, F_SETFL, O_RDONLY | O_ASYNC) != 0)
    return fail_errno("no signal can be sent by a breakpoint");
  if (auto enabled = kernel.enable(fd); !enabled) return enabled;
  events_.push_back(std::move(*event));
  return {};
}

}  // namespace assay::capture
