#include "capture/heap/seccomp_filter.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/trace/traced_thread.h"

namespace assay::capture {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
constexpr size_t kMostFilters = 64;

struct NeededCall {
  const char* name;
  int number;
  std::array<uint64_t, 6> arguments;
};

constexpr uint64_t kData = PROT_READ | PROT_WRITE, kCode = PROT_READ | PROT_EXEC;
constexpr auto kHere = static_cast<uint64_t>(AT_FDCWD);
constexpr auto kNoFile = static_cast<uint64_t>(-1);

// Of the injected calls, of dlopen on their behalf, and of the sampler on any thread.
constexpr NeededCall kNeeded[] = {
    {"memfd_create", SYS_memfd_create, {0, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
    {"openat", SYS_openat, {kHere, 0, O_RDONLY | O_CLOEXEC}},
    {"read", SYS_read, {}},
    {"pread64", SYS_pread64, {}},
    {"fstat", SYS_fstat, {}},
    {"newfstatat", SYS_newfstatat, {kHere}},
    {"close", SYS_close, {}},
    {"ftruncate", SYS_ftruncate, {}},
    {"fallocate", SYS_fallocate, {}},
    {"fcntl", SYS_fcntl, {3, F_ADD_SEALS}},
    {"mmap", SYS_mmap, {0, 4096, kData, MAP_PRIVATE | MAP_ANONYMOUS, kNoFile}},
    {"mmap of shared memory", SYS_mmap, {0, 4096, kData, MAP_SHARED, 3}},
    {"mmap of code", SYS_mmap, {0, 4096, kCode, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, 3}},
    {"mprotect", SYS_mprotect, {0, 4096, PROT_READ}},
    {"mprotect", SYS_mprotect, {0, 4096, kData}},
    {"munmap", SYS_munmap, {}},
    {"brk", SYS_brk, {}},
    {"futex", SYS_futex, {}},
    {"getpid", SYS_getpid, {}},
    {"gettid", SYS_gettid, {}},
    {"ppoll", SYS_ppoll, {}},
    {"prlimit64", SYS_prlimit64, {}},
    {"sched_getaffinity", SYS_sched_getaffinity, {}},
    {"sigaltstack", SYS_sigaltstack, {}},
    {"rt_sigprocmask", SYS_rt_sigprocmask, {SIG_SETMASK}},
    {"rt_sigreturn", SYS_rt_sigreturn, {}},
};

// The machine that filters run on. Addresses and jumps were checked by the kernel when they were
// set; here everything is checked again.
struct Machine {
  uint32_t a = 0, x = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory{};

  bool load(const sock_filter& op, const seccomp_data& call);
  bool compute(const sock_filter& op);
  bool holds(const sock_filter& op) const;
};

bool Machine::load(const sock_filter& op, const seccomp_data& call) {
  uint32_t& into = BPF_CLASS(op.code) == BPF_LD ? a : x;
  switch (BPF_MODE(op.code)) {
    case BPF_IMM:
      into = op.k;
      return true;
    case BPF_MEM:
      if (op.k >= memory.size()) return false;
      into = memory[op.k];
      return true;
    case BPF_LEN:
      into = sizeof call;
      return true;
    case BPF_ABS:
      if (op.k % 4 != 0 || op.k + 4 > sizeof call) return false;
      std::memcpy(&into, reinterpret_cast<const char*>(&call) + op.k, 4);
      return true;
    default:
      return false;
  }
}

bool Machine::compute(const sock_filter& op) {
  uint32_t by = BPF_SRC(op.code) == BPF_X ? x : op.k;
  switch (BPF_OP(op.code)) {
    case BPF_ADD:
      a += by;
      return true;
    case BPF_SUB:
      a -= by;
      return true;
    case BPF_MUL:
      a *= by;
      return true;
    case BPF_DIV:
      if (by == 0) return false;
      a /= by;
      return true;
    case BPF_AND:
      a &= by;
      return true;
    case BPF_OR:
      a |= by;
      return true;
    case BPF_XOR:
      a ^= by;
      return true;
    case BPF_LSH:
      a = by < 32 ? a << by : 0;
      return true;
    case BPF_RSH:
      a = by < 32 ? a >> by : 0;
      return true;
    case BPF_NEG:
      a = 0 - a;
      return true;
    default:
      return false;
  }
}

bool Machine::holds(const sock_filter& op) const {
  uint32_t with = BPF_SRC(op.code) == BPF_X ? x : op.k;
  switch (BPF_OP(op.code)) {
    case BPF_JEQ:
      return a == with;
    case BPF_JGT:
      return a > with;
    case BPF_JGE:
      return a >= with;
    default:
      return (a & with) != 0;  // JSET
  }
}

bool is_allowed(const SeccompProgram& filter, const NeededCall& needed) {
  seccomp_data call{};
  call.nr = needed.number;
  call.arch = kArchitecture;
  std::copy(needed.arguments.begin(), needed.arguments.end(), call.args);
  auto answer = run_filter(filter, call);
  uint32_t action = answer ? *answer & SECCOMP_RET_ACTION_FULL : SECCOMP_RET_KILL_PROCESS;
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

}  // namespace

std::optional<uint32_t> run_filter(std::span<const sock_filter> program, const seccomp_data& call) {
  Machine machine;
  for (size_t at = 0; at < program.size(); ++at) {  // jumps lead forward alone
    const sock_filter& op = program[at];
    bool sound = true;
    switch (BPF_CLASS(op.code)) {
      case BPF_LD:
      case BPF_LDX:
        sound = machine.load(op, call);
        break;
      case BPF_ST:
      case BPF_STX:
        sound = op.k < machine.memory.size();
        if (sound) machine.memory[op.k] = BPF_CLASS(op.code) == BPF_ST ? machine.a : machine.x;
        break;
      case BPF_ALU:
        sound = machine.compute(op);
        break;
      case BPF_JMP:
        at += BPF_OP(op.code) == BPF_JA ? op.k : machine.holds(op) ? op.jt : op.jf;
        break;
      case BPF_RET:
        return BPF_RVAL(op.code) == BPF_A ? machine.a : op.k;
      default:  // BPF_MISC
        if (BPF_MISCOP(op.code) == BPF_TAX)
          machine.x = machine.a;
        else
          machine.a = machine.x;
    }
    if (!sound) return std::nullopt;
  }
  return std::nullopt;
}

std::string first_forbidden(const std::vector<SeccompProgram>& filters) {
  for (const NeededCall& needed : kNeeded) {
    for (const SeccompProgram& filter : filters) {
      if (!is_allowed(filter, needed)) return needed.name;
    }
  }
  return "";
}

Result<std::vector<SeccompProgram>> read_filters(pid_t tid) {
  std::vector<SeccompProgram> filters;
  for (size_t index = 0; index < kMostFilters; ++index) {
    long count = os::read_seccomp_filter(tid, index, nullptr);
    if (count < 0 && errno == ENOENT) return filters;  // no more of them
    if (count < 0) return fail_errno("its seccomp filters cannot be read");
    SeccompProgram program(static_cast<size_t>(count));
    if (os::read_seccomp_filter(tid, index, program.data()) != count)
      return fail_errno("its seccomp filters cannot be read");
    filters.push_back(std::move(program));
  }
  return fail("it has more seccomp filters than can be read");
}

}  // namespace assay::capture
