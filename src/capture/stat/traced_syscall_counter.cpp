#include <sys/syscall.h>

#include "capture/stat/syscall_counter.h"
#include "os/events/tracefs.h"

namespace assay::capture {
namespace {

struct Common {
  const char* name;
  uint32_t number;
};
// The most common calls of servers. Each needs an event per thread, so the list is short.
constexpr Common kCommon[] = {{"read", SYS_read},
                              {"write", SYS_write},
                              {"recvfrom", SYS_recvfrom},
                              {"sendto", SYS_sendto},
                              {"recvmsg", SYS_recvmsg},
                              {"sendmsg", SYS_sendmsg},
                              {"epoll_wait", SYS_epoll_wait},
                              {"futex", SYS_futex},
                              {"accept4", SYS_accept4},
                              {"close", SYS_close}};
constexpr size_t kMostThreads = 128;  // beyond, only the sum is counted

class TracedSyscallCounter final : public SyscallCounter {
 public:
  TracedSyscallCounter(os::CounterKernel& kernel) : kernel_(kernel) {}

  Result<void> open(const std::vector<pid_t>& tids, TracepointNumber number) {
    auto all = number("raw_syscalls/sys_enter");
    if (!all) return std::unexpected(all.error());
    for (pid_t tid : tids) {
      if (auto counted = count(*all, tid, kAll); !counted && all_.empty()) return counted;
    }
    if (tids.size() > kMostThreads) return {};
    for (const Common& common : kCommon) {
      auto id = number(std::string("syscalls/sys_enter_") + common.name);
      if (!id) continue;
      for (pid_t tid : tids) (void)count(*id, tid, common.number);
    }
    return {};
  }

  SyscallCalls read() override {
    SyscallCalls calls;
    for (const auto& [number, fd] : all_) {
      auto reading = kernel_.read(fd.get());
      if (!reading) continue;
      if (number == kAll) {
        calls.all += reading->value;
      } else if (reading->value > 0) {
        calls.by_number[number] += reading->value;
      }
    }
    return calls;
  }
  const char* source() const override { return "tracepoints: only common calls by name"; }

 private:
  static constexpr uint32_t kAll = UINT32_MAX;

  Result<void> count(uint64_t tracepoint, pid_t tid, uint32_t number) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = tracepoint;
    auto fd = kernel_.open(attr, tid, -1);
    if (!fd) return std::unexpected(fd.error());
    all_.emplace_back(number, std::move(*fd));
    return {};
  }

  os::CounterKernel& kernel_;
  std::vector<std::pair<uint32_t, UniqueFd>> all_;
};

}  // namespace

Result<uint64_t> number_in_tracefs(const std::string& name) {
  auto tracepoint = os::read_tracepoint(name);
  if (!tracepoint) return std::unexpected(tracepoint.error());
  return tracepoint->id;
}

Result<std::unique_ptr<SyscallCounter>> open_traced_syscall_counter(os::CounterKernel& kernel,
                                                                    const std::vector<pid_t>& tids,
                                                                    TracepointNumber number) {
  auto counter = std::make_unique<TracedSyscallCounter>(kernel);
  if (auto opened = counter->open(tids, number); !opened) return std::unexpected(opened.error());
  return counter;
}

Result<std::unique_ptr<SyscallCounter>> open_syscall_counter(const std::vector<pid_t>& pids,
                                                             const std::vector<pid_t>& tids) {
  auto bpf = open_bpf_syscall_counter(pids);
  if (bpf) return bpf;
  auto traced = open_traced_syscall_counter(os::real_counter_kernel(), tids, number_in_tracefs);
  if (traced) return traced;
  return fail_with_remedy(
      fmt::format("system calls: {}; {}", bpf.error().what, traced.error().what), "run as root");
}

}  // namespace assay::capture
