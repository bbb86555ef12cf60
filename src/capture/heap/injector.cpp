#include "capture/heap/injector.h"

#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "capture/heap/injection_plan.h"
#include "capture/heap/thread_taker.h"
#include "capture/heap/trust/target_memory.h"

namespace assay::capture {
namespace {

constexpr int64_t kGuardNs = 15 * kNsPerSecond;  // that one gives up looking for a thread before
constexpr useconds_t kGuardLookUs = 5'000;
constexpr int64_t kAbandonedNs = 2 * kNsPerSecond;
constexpr useconds_t kAbandonedLookUs = 100'000;

// Makes a memory file in the target and takes it here as well. Another thread of the target may put
// another file behind the number meanwhile: what is taken is looked at before it is used.
struct SharedMemfd {
  int64_t remote = -1;
  UniqueFd here;
};
Result<SharedMemfd> make_memfd(HijackedThread& thread, pid_t pid, const char* name) {
  auto text = thread.put_text(name);
  if (!text) return std::unexpected(text.error());
  auto fd = thread.syscall(SYS_memfd_create, {*text, MFD_CLOEXEC | MFD_ALLOW_SEALING});
  if (!fd) return std::unexpected(fd.error());
  if (*fd < 0) {
    errno = static_cast<int>(-*fd);
    return fail_errno("the target cannot make a memory file");
  }
  auto here = take_memory_file(pid, static_cast<int>(*fd), name);
  if (!here) {
    (void)thread.syscall(SYS_close, {static_cast<uint64_t>(*fd)});
    return std::unexpected(here.error());
  }
  return SharedMemfd{*fd, std::move(*here)};
}

Result<void> write_all(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return fail_errno("the sampler cannot be handed over");
    done += static_cast<size_t>(wrote);
  }
  return {};
}

// Writes the library's bytes into the file and seals it: neither its size nor its bytes can change.
Result<void> fill_sealed(int fd, const std::string& bytes) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW, kRest = F_SEAL_WRITE | F_SEAL_SEAL;
  if (::ftruncate(fd, static_cast<off_t>(bytes.size())) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, kSize) != 0)
    return fail_errno("the sampler cannot be handed over");
  if (auto written = write_all(fd, bytes); !written) return written;
  if (::fcntl(fd, F_ADD_SEALS, kRest) != 0) return fail_errno("the sampler cannot be handed over");
  return {};
}

// Where the library that dlopen gave this handle for is mapped; 0: cannot be told. A handle of
// glibc's is a link_map. (Reading all mappings of a large process takes a while, and the thread is
// held.)
uint64_t base_of(const HijackedThread& thread, uint64_t handle) {
  uint64_t base = 0;
  uint32_t magic = 0, expected = 0;
  std::memcpy(&expected, ELFMAG, SELFMAG);
  bool known = thread.read_memory(handle + offsetof(link_map, l_addr), &base, sizeof base) &&
               thread.read_memory(base, &magic, sizeof magic);
  return known && magic == expected ? base : 0;
}

// dlopen in the target, of a memory file with the library's bytes. Where it is mapped then; 0: to
// be looked for.
Result<uint64_t> load_library(HijackedThread& thread, const InjectionPlan& plan,
                              const std::string& bytes) {
  auto memory = make_memfd(thread, plan.pid, kInjectedMemory);
  if (!memory) return std::unexpected(memory.error());
  Result<void> done = fill_sealed(memory->here.get(), bytes);
  memory->here.reset();
  Result<uint64_t> handle = 0;
  if (done) {
    auto path = thread.put_text(fmt::format("/proc/self/fd/{}", memory->remote));
    handle = path ? thread.call(plan.dlopen, {*path, RTLD_NOW | RTLD_LOCAL})
                  : Result<uint64_t>(std::unexpected(path.error()));
  }
  (void)thread.syscall(SYS_close, {static_cast<uint64_t>(memory->remote)});
  if (!done) return std::unexpected(done.error());
  if (!handle) return std::unexpected(handle.error());
  if (*handle != 0) return base_of(thread, *handle);
  std::string why;
  if (plan.dlerror != 0) {
    if (auto text = thread.call(plan.dlerror, {}); text && *text != 0)
      why = thread.read_text(*text);  // made printable there: it is the target's own text
  }
  return fail("the target could not load the sampler{}{}", why.empty() ? "" : ": ", why);
}

enum class Reader : uint8_t { none, there, unknown };

// Whether an Assay has the target's channel mapped: one that was killed has left none. Forked
// relatives of the target, which have the sampler in them as well, read nothing.
Reader find_reader(const os::ProcFs& proc, pid_t target) {
  auto channel_of = [&](pid_t pid) -> std::optional<uint64_t> {
    auto mapping = find_channel(proc, pid);
    return mapping ? std::optional(mapping->inode) : std::nullopt;
  };
  auto own = channel_of(target);
  if (!own) return Reader::unknown;
  for (pid_t pid : proc.pids()) {
    if (pid != target && channel_of(pid) == own && find_sampler(proc, pid) == 0)
      return Reader::there;
  }
  return Reader::none;
}

Error attach_error(uint64_t code) {
  if (code == 1)
    return {"its allocator is linked into the program: a sampler outside would see nothing",
            "link the allocator as a shared library", 0};
  if (code == 101) return {"another Assay is attached to it already", "end that one first", EBUSY};
  return {fmt::format("the sampler could not begin in the target (reason {})", code), "", 0};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail_errno("cannot read {}", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A guard whose Assay was killed puts back what it began, and is gone in a moment.
void wait_for_guard(const os::ProcFs& proc, pid_t pid, const std::function<void()>& on_wait) {
  auto is_guarded = [&] {
    auto status = proc.status(pid);
    if (!status || status->tracer == 0) return false;
    auto name = proc.comm(status->tracer, status->tracer);
    return name && *name == kGuardName;
  };
  TimeNs deadline = monotonic_ns() + kGuardNs;
  for (bool told = false; is_guarded() && monotonic_ns() < deadline; told = true) {
    if (!told && on_wait) on_wait();
    usleep(kGuardLookUs);
  }
}

// What the thread that was taken does when the sampler is brought in.
struct SamplerBringer {
  const os::ProcFs& proc;
  const InjectOptions& options;
  InjectionPlan& plan;
  const SamplerFunctions& functions;
  const std::string& bytes;  // of the library
  UniqueFd channel;          // the result
  bool is_orphaned = false;  // a sampler is there whose Assay is gone

  Result<void> bring(HijackedThread& thread) {
    if (plan.library_base == 0) {
      auto loaded = load_library(thread, plan, bytes);
      if (!loaded) return std::unexpected(loaded.error());
      plan.library_base = *loaded != 0 ? *loaded : find_sampler(proc, plan.pid);
      if (plan.library_base == 0) return fail("the sampler was loaded and cannot be found");
    }
    auto memory = make_memfd(thread, plan.pid, kChannelMemory);
    if (!memory) return std::unexpected(memory.error());
    auto made = HeapChannel::prepare(memory->here.get(), options.ring_bytes, options.rate_bytes);
    Result<uint64_t> code = 0;
    auto fd = static_cast<uint64_t>(memory->remote);
    if (made) {
      if (is_orphaned) (void)thread.call(plan.library_base + functions.detach, {});
      code = thread.call(plan.library_base + functions.attach, {fd});
    }
    (void)thread.syscall(SYS_close, {fd});
    if (!made) return made;
    if (!code) return std::unexpected(code.error());
    if (static_cast<uint32_t>(*code) != 0)
      return std::unexpected(attach_error(static_cast<uint32_t>(*code)));
    channel = std::move(memory->here);
    return {};
  }
};

Result<Injected> inject_once(const os::ProcFs& proc, pid_t pid, const InjectOptions& options) {
  wait_for_guard(proc, pid, options.on_wait);
  auto plan = plan_injection(proc, pid, options.start_ticks);
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
  SamplerBringer bringer{proc, options, *plan, *functions, *bytes, UniqueFd()};
  // Where it cannot be told, the sampler is believed.
  bringer.is_orphaned = plan->library_base != 0 && find_reader(proc, pid) == Reader::none;
  auto done = run_guarded([&](const IsAbandoned& is_abandoned) -> Result<GuardedResult> {
    ThreadTaker taker(*plan, is_abandoned);
    auto pause = taker.run([&](HijackedThread& thread) { return bringer.bring(thread); });
    if (!pause) return std::unexpected(pause.error());
    return GuardedResult{*pause, std::move(bringer.channel)};
  });
  if (!done) return std::unexpected(done.error());
  auto channel = HeapChannel::adopt(std::move(done->memory), "what the target shares with us");
  if (!channel) return std::unexpected(channel.error());
  if (auto taken = (*channel)->reserve(); !taken) {
    (*channel)->stop_sampling();
    (void)remove_sampler(pid, options.library, plan->start_ticks);
    return std::unexpected(taken.error());
  }
  (*channel)->open_for_children();
  return Injected{std::move(*channel), done->pause, plan->allocator};
}

}  // namespace

// An Assay that was killed may have left a sampler in the target, because its guard finished the
// work. Such a sampler has no reader and stops a moment later, so attaching is tried again.
Result<Injected> inject_sampler(pid_t pid, const InjectOptions& options) {
  os::ProcFs proc;
  TimeNs deadline = monotonic_ns() + kAbandonedNs;
  while (true) {
    auto injected = inject_once(proc, pid, options);
    bool is_taken = !injected && injected.error().code == EBUSY;
    if (!is_taken || monotonic_ns() >= deadline || find_reader(proc, pid) == Reader::there)
      return injected;
    usleep(kAbandonedLookUs);
  }
}

Result<InjectPause> remove_sampler(pid_t pid, const std::string& library, uint64_t start_ticks) {
  os::ProcFs proc;
  auto plan = plan_injection(proc, pid, start_ticks);
  if (!plan) return std::unexpected(plan.error());
  if (plan->library_base == 0) return fail("process {} has no sampler in it", pid);
  auto functions = read_mapped_functions(proc, pid);
  if (!functions) functions = read_sampler_functions(library);  // not root: we brought it ourselves
  if (!functions) return std::unexpected(functions.error());
  auto take_out = [&](HijackedThread& thread) -> Result<void> {
    auto code = thread.call(plan->library_base + functions->detach, {});
    if (!code) return std::unexpected(code.error());
    if (static_cast<uint32_t>(*code) != 0)
      return fail("the sampler could not take its hooks out (reason {})",
                  static_cast<uint32_t>(*code));
    return {};
  };
  auto done = run_guarded([&](const IsAbandoned& is_abandoned) -> Result<GuardedResult> {
    auto pause = ThreadTaker(*plan, is_abandoned).run(take_out);
    if (!pause) return std::unexpected(pause.error());
    return GuardedResult{*pause, UniqueFd()};
  });
  if (!done) return std::unexpected(done.error());
  return done->pause;
}

Result<std::unique_ptr<HeapChannel>> open_forked_channel(const os::ProcFs& proc, pid_t pid) {
  auto mapping = find_channel(proc, pid);
  if (!mapping) return fail("process {} has no channel", pid);
  std::string path =
      fmt::format("{}/{}/map_files/{:x}-{:x}", proc.root(), pid, mapping->start, mapping->end);
  auto fd = open_mapped_memory(path, kChannelMemory);
  if (!fd) return std::unexpected(fd.error());
  return HeapChannel::adopt(std::move(*fd), fmt::format("what process {} shares", pid));
}

}  // namespace assay::capture
