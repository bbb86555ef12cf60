#include "os/sandbox/system_call_filter.h"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace assay::os {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// What computing on open descriptors needs, and nothing that names a file, a process or an address.
constexpr int kComputing[] = {
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_lseek,
    SYS_fstat,
    SYS_close,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_ppoll,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_gettid,
    SYS_getpid,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_sigaltstack,
    SYS_clock_gettime,
    SYS_getrandom,
    SYS_sched_yield,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_sched_getaffinity,
    SYS_membarrier,
    SYS_tgkill,
#if defined(__x86_64__)
    SYS_poll,
#endif
};

// To files that it was given.
constexpr int kWriting[] = {
    SYS_pwrite64, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_uname, SYS_sysinfo, SYS_getrusage,
};

// On a socket that it was given, and on those that come of it.
constexpr int kServing[] = {
    SYS_accept4,       SYS_accept,          SYS_getsockname,     SYS_getpeername, SYS_getsockopt,
    SYS_setsockopt,    SYS_shutdown,        SYS_recvfrom,        SYS_sendto,      SYS_epoll_create1,
    SYS_epoll_ctl,     SYS_epoll_pwait,     SYS_eventfd2,        SYS_pipe2,       SYS_timerfd_create,
    SYS_timerfd_settime,
#if defined(__x86_64__)
    SYS_epoll_wait,    SYS_epoll_create,
#endif
};

// To a server by its name: the resolver reads its own files.
constexpr int kConnecting[] = {
    SYS_socket,     SYS_connect,   SYS_bind,     SYS_getsockname, SYS_getpeername,
    SYS_getsockopt, SYS_setsockopt, SYS_shutdown, SYS_recvfrom,    SYS_sendto,
    SYS_sendmmsg,   SYS_recvmmsg,  SYS_statx,    SYS_newfstatat,  SYS_readlinkat,
    SYS_faccessat,  SYS_getdents64, SYS_geteuid, SYS_getuid,      SYS_getcwd,
#if defined(__x86_64__)
    SYS_access,     SYS_readlink,  SYS_stat,
#endif
};

class Filter {
 public:
  Filter() {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  }
  void allow(int number) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  // Answers with an error: the caller goes on without what it asked for.
  void refuse(int number, int error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }
  // Allows a call when all bits of `set` and none of `clear` are in an argument.
  void allow_if(int number, int argument, uint32_t set, uint32_t clear) {
    auto low_half =
        static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument));
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 5);
    add(BPF_LD | BPF_W | BPF_ABS, low_half);
    add(BPF_ALU | BPF_AND | BPF_K, set | clear);
    add(BPF_JMP | BPF_JEQ | BPF_K, set, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  // Allows a call when the low half of an argument is one of `values`.
  void allow_only(int number, int argument, std::initializer_list<uint32_t> values) {
    auto low_half =
        static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument));
    auto beyond = static_cast<uint8_t>(2 * values.size() + 2);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, beyond);
    add(BPF_LD | BPF_W | BPF_ABS, low_half);
    for (uint32_t value : values) {
      add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  bool install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void add(uint32_t code, size_t k, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, static_cast<uint32_t>(k)});
  }
  std::vector<sock_filter> code_;
};

void allow_all(Filter& filter, std::span<const int> numbers) {
  for (int number : numbers) filter.allow(number);
}

void allow_computing(Filter& filter) {
  allow_all(filter, kComputing);
  filter.allow_if(SYS_mmap, 2, 0, PROT_EXEC);
  filter.allow_if(SYS_mprotect, 2, 0, PROT_EXEC);
  // Threads, not processes. glibc tries clone3 first, whose arguments a filter cannot see, and then
  // clone.
  filter.refuse(SYS_clone3, ENOSYS);
  filter.allow_if(SYS_clone, 0, CLONE_THREAD | CLONE_VM,
                  CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID);
}

void allow_connecting(Filter& filter) {
  allow_all(filter, kConnecting);
  constexpr uint32_t kChanges = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  filter.allow_if(SYS_openat, 2, 0, kChanges);
#if defined(__x86_64__)
  filter.allow_if(SYS_open, 1, 0, kChanges);
#endif
}

}  // namespace

Result<void> install_filter(const AllowedCalls& calls) {
  Filter filter;
  allow_computing(filter);
  if (calls.writes) {
    allow_all(filter, kWriting);
    filter.allow_only(SYS_fcntl, 1,
                      {F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_OFD_GETLK, F_OFD_SETLK});
    filter.allow_only(SYS_ioctl, 1, {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO});
    filter.allow_only(SYS_prlimit64, 0, {0});  // of itself
  } else {
    // A copy of a descriptor, and nothing else that fcntl() does.
    filter.allow_only(SYS_fcntl, 1, {F_DUPFD_CLOEXEC});
  }
  if (calls.serves) allow_all(filter, kServing);
  if (calls.connects) allow_connecting(filter);
  // glibc's fstat() is newfstatat() of an empty path with this flag. With a path, the call would
  // tell size and times of a file that the user "nobody" can reach, but never its contents.
  if (!calls.connects) filter.allow_if(SYS_newfstatat, 3, AT_EMPTY_PATH, 0);
  if (!filter.install()) return fail_errno("the system call filter cannot be installed");
  return {};
}

}  // namespace assay::os
