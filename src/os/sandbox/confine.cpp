#include "os/sandbox/confine.h"

#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "os/sandbox/credentials.h"

namespace assay::os {
namespace {

constexpr int kLastCapability = 63;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// What computing on open descriptors needs, and nothing that names a file, a process or an address.
constexpr int kAllowed[] = {
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

[[maybe_unused]] bool install_filter() {
  Filter filter;
  for (int number : kAllowed) filter.allow(number);
  filter.allow_if(SYS_mmap, 2, 0, PROT_EXEC);
  filter.allow_if(SYS_mprotect, 2, 0, PROT_EXEC);
  // Threads, not processes. glibc tries clone3 first, whose arguments a filter cannot see, and then
  // clone.
  filter.refuse(SYS_clone3, ENOSYS);
  filter.allow_if(SYS_clone, 0, CLONE_THREAD | CLONE_VM,
                  CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID);
  // A copy of a descriptor, and nothing else that fcntl() does.
  filter.allow_if(SYS_fcntl, 1, F_DUPFD_CLOEXEC, ~static_cast<uint32_t>(F_DUPFD_CLOEXEC));
  // glibc's fstat() is newfstatat() of an empty path with this flag. With a path, the call would
  // tell size and times of a file that the user "nobody" can reach, but never its contents.
  filter.allow_if(SYS_newfstatat, 3, AT_EMPTY_PATH, 0);
  return filter.install();
}

Result<void> set_limit(__rlimit_resource resource, uint64_t most) {
  rlimit limit{most, most};
  if (::setrlimit(resource, &limit) != 0) return fail_errno("a resource limit cannot be set");
  return {};
}

Result<void> become_nobody() {
  if (::geteuid() != 0) return {};
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    return fail_errno("the user cannot be changed");
  return {};
}

// What a program that is run later could gain. Without the right to change it, no_new_privs alone
// must do.
void empty_bounding_set() {
  for (int capability = 0; capability <= kLastCapability; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

}  // namespace

Result<void> drop_capabilities() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("new privileges cannot be ruled out");
  empty_bounding_set();
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail_errno("capabilities cannot be dropped");
  return {};
}

Result<void> confine(const ConfineLimits& limits) {
  empty_bounding_set();  // while there is still the right to
  if (auto done = become_nobody(); !done) return done;
  if (auto done = drop_capabilities(); !done) return done;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (auto [resource, most] :
       {std::pair{RLIMIT_FSIZE, uint64_t{0}}, std::pair{RLIMIT_CORE, uint64_t{0}},
        std::pair{RLIMIT_NOFILE, limits.open_files}}) {
    if (auto done = set_limit(resource, most); !done) return done;
  }
  if (kSanitized) return {};  // sanitizers need much memory and system calls of their own
  if (auto done = set_limit(RLIMIT_DATA, limits.heap_bytes); !done) return done;
  if (!install_filter()) return fail_errno("the system call filter cannot be installed");
  return {};
}

}  // namespace assay::os
