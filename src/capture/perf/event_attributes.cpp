// The attributes with which an EventSet opens each kind of event.
#include <ctime>

#include "capture/perf/event_set.h"

namespace assay::capture {

void EventSet::describe_switches(EventKind kind, perf_event_attr& attr) const {
  if (switch_.id != 0 && tier_ == Tier::per_cpu) {
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = switch_.id;
  } else {
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  }
  attr.sample_period = 1;
  attr.sample_type = kStackSampleType;
  attr.sample_stack_user = options_.off_cpu_copy_bytes;
  attr.exclude_callchain_user = !options_.off_cpu_user_chain;
  attr.exclude_callchain_kernel = kind == EventKind::off_cpu_bare;
}

perf_event_attr EventSet::attributes(EventKind kind) const {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.disabled = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = 256 * 1024;
  attr.read_format = PERF_FORMAT_LOST;
  attr.sample_type = kCommonSampleType;
  attr.exclude_kernel = tier_ == Tier::user_only;
  attr.exclude_hv = 1;
  if (tier_ != Tier::per_cpu) {
    attr.inherit = 1;
    attr.inherit_thread = options_.children ? 0 : 1;
  }
  attr.type = PERF_TYPE_SOFTWARE;
  switch (kind) {
    case EventKind::side_band:
      attr.config = PERF_COUNT_SW_DUMMY;
      attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
      attr.build_id = 1;
      attr.context_switch = !options_.side_band_only && (switch_.id == 0 || tier_ != Tier::per_cpu);
      break;
    case EventKind::on_cpu:
      if (use_cycles_) {
        attr.type = PERF_TYPE_HARDWARE;
        attr.config = PERF_COUNT_HW_CPU_CYCLES;
        attr.freq = 1;
        attr.sample_freq = static_cast<uint64_t>(options_.frequency_hz);
      } else {
        attr.config = PERF_COUNT_SW_CPU_CLOCK;
        attr.sample_period = static_cast<uint64_t>(sample_period_ns_);
      }
      attr.exclude_idle = 1;
      attr.sample_type = kStackSampleType;
      attr.sample_stack_user = options_.on_cpu_copy_bytes;
      break;
    case EventKind::off_cpu:
    case EventKind::off_cpu_bare:
      describe_switches(kind, attr);
      break;
    case EventKind::waking:
      attr.type = PERF_TYPE_TRACEPOINT;
      attr.config = waking_.id;
      attr.sample_period = 1;
      attr.sample_type = kWakingSampleType;
      break;
    case EventKind::unknown:
      break;
  }
  if (attr.sample_type & PERF_SAMPLE_REGS_USER) attr.sample_regs_user = user_register_mask();
  return attr;
}

// The on-CPU event as a capture of another kind needs it: without a ring of its own.
perf_event_attr EventSet::bare_on_cpu_attributes() const {
  perf_event_attr attr = attributes(EventKind::on_cpu);
  attr.sample_type = kCommonSampleType;
  attr.sample_stack_user = 0;
  attr.sample_regs_user = 0;
  attr.watermark = 0;
  attr.wakeup_watermark = 0;
  return attr;
}

}  // namespace assay::capture
