#include "evidence/wait_sites.h"

#include <algorithm>
#include <array>

#include <sys/syscall.h>

#include "model/syscalls.h"

namespace assay::evidence {
namespace {

using model::kNoSyscall;

struct Hint {
  std::string_view function;
  uint16_t syscall;
};

// Entry functions may have been left by a tail call; these only ever run on behalf of one call (or
// of one family, named by its usual member).
constexpr std::array kHints{
    Hint{"do_futex", SYS_futex},
    Hint{"futex_wait", SYS_futex},
    Hint{"do_epoll_wait", SYS_epoll_wait},
    Hint{"ep_poll", SYS_epoll_wait},
    Hint{"do_sys_poll", SYS_poll},
    Hint{"do_select", SYS_select},
    Hint{"core_sys_select", SYS_select},
    Hint{"hrtimer_nanosleep", SYS_clock_nanosleep},
    Hint{"do_wait", SYS_wait4},
    Hint{"kernel_wait4", SYS_wait4},
    Hint{"ksys_read", SYS_read},
    Hint{"ksys_write", SYS_write},
    Hint{"do_accept", SYS_accept4},
    Hint{"__sys_accept4", SYS_accept4},
    Hint{"__sys_recvmsg", SYS_recvmsg},
    Hint{"__sys_recvfrom", SYS_recvfrom},
    Hint{"__sys_sendmsg", SYS_sendmsg},
    Hint{"__sys_sendto", SYS_sendto},
    Hint{"do_fsync", SYS_fsync},
    Hint{"do_sigtimedwait", SYS_rt_sigtimedwait},
};

constexpr std::array kDescriptorCalls{
    SYS_read,           SYS_write,      SYS_pread64,     SYS_pwrite64,
    SYS_readv,          SYS_writev,     SYS_preadv,      SYS_pwritev,
    SYS_preadv2,        SYS_pwritev2,   SYS_recvfrom,    SYS_sendto,
    SYS_recvmsg,        SYS_sendmsg,    SYS_recvmmsg,    SYS_sendmmsg,
    SYS_accept,         SYS_accept4,    SYS_connect,     SYS_sendfile,
    SYS_splice,         SYS_fsync,      SYS_fdatasync,   SYS_sync_file_range,
    SYS_flock,          SYS_ioctl,      SYS_ftruncate,   SYS_fallocate,
    SYS_getdents64,     SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2,
    SYS_io_uring_enter, SYS_close};

const std::unordered_map<std::string_view, uint16_t>& numbers_by_name() {
  static const auto* numbers = [] {
    auto* map = new std::unordered_map<std::string_view, uint16_t>;
    constexpr uint16_t kHighest = 1024;
    for (uint16_t number = 0; number < kHighest; ++number) {
      std::string_view name = model::syscall_name(number);
      if (!name.empty()) map->emplace(name, number);
    }
    // Kernel entry functions that are not called like their system call.
    map->emplace("newfstatat", SYS_newfstatat);
    map->emplace("sendfile64", SYS_sendfile);
    return map;
  }();
  return *numbers;
}

}  // namespace

uint16_t syscall_of_kernel_function(std::string_view function) {
  size_t clone_suffix = function.find('.');  // "do_futex.isra.0"
  function = function.substr(0, clone_suffix);
  for (std::string_view prefix : {"__x64_sys_", "__se_sys_", "__do_sys_", "__arm64_sys_"}) {
    if (!function.starts_with(prefix)) continue;
    auto it = numbers_by_name().find(function.substr(prefix.size()));
    return it == numbers_by_name().end() ? kNoSyscall : it->second;
  }
  auto hint = std::ranges::find(kHints, function, &Hint::function);
  return hint == kHints.end() ? kNoSyscall : hint->syscall;
}

bool takes_descriptor(uint16_t syscall) {
  return std::ranges::find(kDescriptorCalls, static_cast<int>(syscall)) != kDescriptorCalls.end();
}

WaitSites::WaitSites(const os::ProcFs& proc, symbol::Symbolizer& symbolizer, model::ModuleId kernel,
                     FutexSeen futex_seen)
    : symbolizer_(symbolizer),
      kernel_(kernel),
      futex_seen_(std::move(futex_seen)),
      fd_kinds_(proc) {}

uint16_t WaitSites::syscall_at(uint64_t kernel_address) {
  auto [it, added] = syscall_by_address_.try_emplace(kernel_address, kNoSyscall);
  if (added) {
    auto names = symbolizer_.resolve(kernel_, kernel_address);
    if (!names.empty()) it->second = syscall_of_kernel_function(names.back().function);
  }
  return it->second;
}

capture::WaitSite WaitSites::site(pid_t pid, const capture::SampleRecord& sample,
                                  model::StackId stack, TimeNs now) {
  capture::WaitSite site;
  site.stack = stack;
  for (size_t i = sample.kernel_chain.size(); i-- > 0;) {
    uint16_t syscall = syscall_at(sample.kernel_chain[i] - 1);
    if (syscall == kNoSyscall) continue;
    describe(pid, syscall, sample.registers.value[model::kRegRdi], now, site);
    break;
  }
  return site;
}

capture::WaitSite WaitSites::site(pid_t pid, const os::ThreadSnapshot& snapshot,
                                  model::StackId stack) {
  capture::WaitSite site;
  site.stack = stack;
  if (snapshot.syscall.number >= 0 && snapshot.syscall.number < kNoSyscall) {
    describe(pid, static_cast<uint16_t>(snapshot.syscall.number), snapshot.syscall.args[0],
             snapshot.time, site);
  }
  return site;
}

capture::WaitSite WaitSites::site(pid_t pid, uint16_t syscall, uint64_t first_argument,
                                  model::StackId stack, TimeNs now) {
  capture::WaitSite site;
  site.stack = stack;
  if (syscall != kNoSyscall) describe(pid, syscall, first_argument, now, site);
  return site;
}

void WaitSites::describe(pid_t pid, uint16_t syscall, uint64_t first_argument, TimeNs now,
                         capture::WaitSite& site) {
  site.syscall = syscall;
  site.arg = first_argument;
  if (syscall == SYS_futex) futex_seen_(pid, first_argument);
  if (takes_descriptor(syscall) && first_argument <= INT32_MAX) {
    site.fd_kind = fd_kinds_.kind_of(pid, static_cast<int>(first_argument), now);
  }
}

}  // namespace assay::evidence
