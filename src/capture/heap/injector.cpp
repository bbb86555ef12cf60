#include "capture/heap/injector.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "capture/heap/hijacked_thread.h"
#include "capture/heap/injection_plan.h"
#include "capture/heap/tracees.h"

namespace assay::capture {
namespace {

constexpr int64_t kFindNs = 10 * kNsPerSecond;     // until a thread stands where it may be taken
constexpr int64_t kBreakpointNs = 200 * kNsPerMs;  // then blocked threads are looked for again
constexpr int64_t kInterruptNs = 200 * kNsPerMs;
constexpr useconds_t kFutexLookUs = 20'000;

// A thread that waits in one of these holds no lock of the allocator or the loader.
bool is_harmless_wait(const os::ProcFs& proc, pid_t pid, const os::SyscallState& call) {
  switch (call.number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_wait4:
    case SYS_waitid:
      return true;
    case SYS_read: {  // of a file the loader may read
      auto link = proc.fd_link(pid, static_cast<int>(call.args[0]));
      return link && (link->starts_with("socket:") || link->starts_with("pipe:") ||
                      link->starts_with("anon_inode:") || link->starts_with("/dev/"));
    }
    default:
      return false;
  }
}

bool same_call(const os::SyscallState& a, const os::SyscallState& b) {
  return a.number == b.number && a.sp == b.sp && a.ip == b.ip && a.args[0] == b.args[0];
}

// Waiting threads, the least doubtful first. Who waits for a futex may wait for the allocator's:
// not for as long as this, though.
std::vector<pid_t> waiting_threads(const os::ProcFs& proc, pid_t pid) {
  std::vector<pid_t> waiting;
  std::vector<std::pair<pid_t, os::SyscallState>> futexes;
  constexpr size_t kEnough = 4;
  for (pid_t tid : proc.tids(pid)) {
    auto call = proc.syscall(pid, tid);
    if (!call || !*call) continue;
    if (is_harmless_wait(proc, pid, **call)) waiting.push_back(tid);
    // A wait that was interrupted before is taken up again under another number.
    bool is_doubtful = (*call)->number == SYS_futex || (*call)->number == SYS_restart_syscall;
    if (is_doubtful) futexes.emplace_back(tid, **call);
    if (waiting.size() >= kEnough) return waiting;
  }
  if (!waiting.empty() || futexes.empty()) return waiting;
  usleep(kFutexLookUs);
  for (const auto& [tid, before] : futexes) {
    auto call = proc.syscall(pid, tid);
    if (call && *call && same_call(**call, before)) waiting.push_back(tid);
    if (waiting.size() >= kEnough) break;
  }
  return waiting;
}

// While a breakpoint stands in the target, what would end us waits: left there, it would end the
// target. (Against SIGKILL there is no help.) The signals are raised again afterwards.
class HeldSignals {
 public:
  HeldSignals() {
    arrived = 0;
    struct sigaction note {};
    note.sa_handler = [](int signal) { arrived = arrived | 1u << signal; };
    note.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &note, &before_[i]);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
      if (arrived & 1u << kSignals[i]) kill(getpid(), kSignals[i]);
    }
  }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  static inline volatile sig_atomic_t arrived = 0;
  std::array<struct sigaction, kSignals.size()> before_{};
};

// Finds a thread that may be taken, takes it, and hands it to `use`; whatever comes of it, the
// thread is put back and nobody stays traced.
class ThreadTaker {
 public:
  using Use = std::function<Result<void>(HijackedThread&)>;
  explicit ThreadTaker(const InjectionPlan& plan) : plan_(plan) {}

  Result<InjectPause> run(const Use& use) {
    TimeNs deadline = monotonic_ns() + kFindNs;
    while (monotonic_ns() < deadline) {
      for (pid_t tid : waiting_threads(proc_, plan_.pid)) {
        auto used = try_waiting(tid, use);
        if (!used) return std::unexpected(used.error());
        if (*used) return pause_;
      }
      auto used = try_breakpoint(use);
      if (!used) return std::unexpected(used.error());
      if (*used) return pause_;
    }
    return fail_with_remedy(
        fmt::format("no thread of process {} waited, or called malloc, within {} seconds: there "
                    "was no place to attach safely",
                    plan_.pid, kFindNs / kNsPerSecond),
        "try again under load, or start it with: assay heap -- COMMAND");
  }

 private:
  // False: the thread went on before it could be taken.
  Result<bool> try_waiting(pid_t tid, const Use& use) {
    Tracees tracees(proc_, plan_.pid);
    if (auto seized = tracees.seize(tid); !seized) {
      auto stat = proc_.thread_stat(plan_.pid, tid);  // who is exiting says EPERM as well
      bool ended = !stat || stat->state == 'Z' || stat->state == 'X';
      return ended ? Result<bool>(false) : std::unexpected(seized.error());
    }
    if (!tracees.interrupt(tid)) return false;
    auto event = tracees.wait(monotonic_ns() + kInterruptNs);
    if (!event || event->stop != Tracees::Stop::interrupted) return false;
    user_regs_struct registers{};
    if (!read_registers(tid, registers) || !in_restartable_syscall(registers)) return false;
    return take(tracees, tid, 0, use);
  }

  Result<bool> try_breakpoint(const Use& use) {
    HeldSignals held;
    Breakpoint breakpoint(plan_.pid, plan_.malloc_entry);
    Tracees tracees(proc_, plan_.pid);  // let go first: it may still look at the breakpoint
    if (auto seized = tracees.seize_all(); !seized) return std::unexpected(seized.error());
    if (tracees.breakpoints_harm()) return false;
    if (auto inserted = breakpoint.insert(); !inserted) return std::unexpected(inserted.error());
    tracees.watch(&breakpoint);
    auto event = tracees.wait(monotonic_ns() + kBreakpointNs);
    breakpoint.remove();
    Result<bool> used = false;
    if (event && event->stop == Tracees::Stop::breakpoint) {
      used = take(tracees, event->tid, breakpoint.address(), use);
    }
    tracees.release_all();
    return used;
  }

  Result<bool> take(Tracees& tracees, pid_t tid, uint64_t rewind_to, const Use& use) {
    TimeNs begin = monotonic_ns();
    HijackedThread thread(tracees, plan_.pid, tid, plan_.syscall);
    Result<void> done = thread.take(rewind_to);
    if (done) done = use(thread);
    auto restored = thread.restore();
    pause_ = {monotonic_ns() - begin, rewind_to != 0};
    if (!done) return std::unexpected(done.error());
    if (!restored) return std::unexpected(restored.error());
    return true;
  }

  const InjectionPlan& plan_;
  os::ProcFs proc_;
  InjectPause pause_;
};

// Makes a memfd in the target and opens it here as well.
struct SharedMemfd {
  int64_t remote = -1;
  UniqueFd here;
};
Result<SharedMemfd> make_memfd(HijackedThread& thread, pid_t pid, const char* name,
                               uint64_t flags) {
  auto text = thread.put_text(name);
  if (!text) return std::unexpected(text.error());
  auto fd = thread.syscall(SYS_memfd_create, {*text, flags});
  if (!fd) return std::unexpected(fd.error());
  if (*fd < 0) {
    errno = static_cast<int>(-*fd);
    return fail_errno("the target cannot make a memory file");
  }
  SharedMemfd shared;
  shared.remote = *fd;
  shared.here =
      UniqueFd(::open(fmt::format("/proc/{}/fd/{}", pid, *fd).c_str(), O_RDWR | O_CLOEXEC));
  if (!shared.here.valid()) {
    auto failed = fail_errno("the target's memory file cannot be opened");
    (void)thread.syscall(SYS_close, {static_cast<uint64_t>(*fd)});
    return failed;
  }
  return shared;
}

Result<void> write_all(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return fail_errno("the sampler cannot be handed over");
    done += static_cast<size_t>(wrote);
  }
  return {};
}

// dlopen in the target, of a memory file with the library's bytes.
Result<void> load_library(HijackedThread& thread, const InjectionPlan& plan,
                          const std::string& bytes) {
  auto memory = make_memfd(thread, plan.pid, "assay-heap", MFD_CLOEXEC);
  if (!memory) return std::unexpected(memory.error());
  Result<void> done = write_all(memory->here.get(), bytes);
  memory->here.reset();
  Result<uint64_t> handle = 0;
  if (done) {
    auto path = thread.put_text(fmt::format("/proc/self/fd/{}", memory->remote));
    handle = path ? thread.call(plan.dlopen, {*path, RTLD_NOW | RTLD_LOCAL})
                  : Result<uint64_t>(std::unexpected(path.error()));
  }
  (void)thread.syscall(SYS_close, {static_cast<uint64_t>(memory->remote)});
  if (!done) return done;
  if (!handle) return std::unexpected(handle.error());
  if (*handle != 0) return {};
  std::string why;
  if (plan.dlerror != 0) {
    if (auto text = thread.call(plan.dlerror, {}); text && *text != 0)
      why = thread.read_text(*text);
  }
  return fail("the target could not load the sampler{}{}", why.empty() ? "" : ": ", why);
}

// Whether anybody but the target has its channel mapped: an Assay that was killed has left none.
bool has_reader(const os::ProcFs& proc, pid_t target) {
  auto channel_of = [&](pid_t pid) -> std::optional<uint64_t> {
    auto maps = proc.maps(pid);
    if (!maps) return std::nullopt;
    for (const os::MapsEntry& entry : *maps) {
      if (entry.path.starts_with("/memfd:assay-heap-channel")) return entry.inode;
    }
    return std::nullopt;
  };
  auto own = channel_of(target);
  if (!own) return true;  // cannot be told: believe the sampler
  for (pid_t pid : proc.pids()) {
    if (pid != target && channel_of(pid) == own) return true;
  }
  return false;
}

Error attach_error(uint64_t code) {
  if (code == 1)
    return {"its allocator is linked into the program: a sampler outside would see nothing",
            "link the allocator as a shared library", 0};
  if (code == 101) return {"another Assay is attached to it already", "end that one first", EBUSY};
  return {fmt::format("the sampler could not begin in the target (reason {})", code), "", 0};
}

template <class T>
Result<T> in_own_thread(const std::function<Result<T>()>& work) {
  std::optional<Result<T>> result;
  std::thread([&] {
    pthread_setname_np(pthread_self(), "assay-injector");
    // The thread that is held waits for us: be quick. Needs privilege.
    setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), -15);
    result = work();
  }).join();
  return std::move(*result);
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail_errno("cannot read {}", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<Injected> inject(pid_t pid, const InjectOptions& options) {
  os::ProcFs proc;
  auto plan = plan_injection(proc, pid);
  if (!plan) return std::unexpected(plan.error());
  auto functions = plan->library_base == 0 ? read_sampler_functions(options.library)
                                           : read_mapped_functions(proc, pid);
  if (!functions) {
    Error error = functions.error();
    if (plan->library_base != 0) error.remedy = "run as root, or restart the server";
    return std::unexpected(error);
  }
  auto bytes = read_file(options.library);
  if (!bytes) return std::unexpected(bytes.error());
  Injected injected;
  injected.allocator = plan->allocator;
  bool is_orphaned = plan->library_base != 0 && !has_reader(proc, pid);
  ThreadTaker taker(*plan);
  auto pause = taker.run([&](HijackedThread& thread) -> Result<void> {
    if (plan->library_base == 0) {
      if (auto loaded = load_library(thread, *plan, *bytes); !loaded) return loaded;
      plan->library_base = find_sampler(proc, pid);
      if (plan->library_base == 0) return fail("the sampler was loaded and cannot be found");
    }
    auto memory = make_memfd(thread, pid, "assay-heap-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!memory) return std::unexpected(memory.error());
    auto channel =
        HeapChannel::create_in(std::move(memory->here), options.ring_bytes, options.rate_bytes);
    Result<uint64_t> code = 0;
    auto fd = static_cast<uint64_t>(memory->remote);
    if (channel) {
      if (is_orphaned) (void)thread.call(plan->library_base + functions->detach, {});
      code = thread.call(plan->library_base + functions->attach, {fd});
    }
    (void)thread.syscall(SYS_close, {fd});
    if (!channel) return std::unexpected(channel.error());
    if (!code) return std::unexpected(code.error());
    if (static_cast<uint32_t>(*code) != 0)
      return std::unexpected(attach_error(static_cast<uint32_t>(*code)));
    injected.channel = std::move(*channel);
    return {};
  });
  if (!pause) return std::unexpected(pause.error());
  injected.pause = *pause;
  return injected;
}

Result<InjectPause> remove(pid_t pid, const std::string& library) {
  os::ProcFs proc;
  auto plan = plan_injection(proc, pid);
  if (!plan) return std::unexpected(plan.error());
  if (plan->library_base == 0) return fail("process {} has no sampler in it", pid);
  auto functions = read_mapped_functions(proc, pid);
  if (!functions) functions = read_sampler_functions(library);  // not root: we brought it ourselves
  if (!functions) return std::unexpected(functions.error());
  ThreadTaker taker(*plan);
  return taker.run([&](HijackedThread& thread) -> Result<void> {
    auto code = thread.call(plan->library_base + functions->detach, {});
    if (!code) return std::unexpected(code.error());
    if (static_cast<uint32_t>(*code) != 0)
      return fail("the sampler could not take its hooks out (reason {})",
                  static_cast<uint32_t>(*code));
    return {};
  });
}

}  // namespace

Result<Injected> inject_sampler(pid_t pid, const InjectOptions& options) {
  return in_own_thread<Injected>([&] { return inject(pid, options); });
}

Result<InjectPause> remove_sampler(pid_t pid, const std::string& library) {
  return in_own_thread<InjectPause>([&] { return remove(pid, library); });
}

}  // namespace assay::capture
