#include "capture/heap/injection_plan.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "capture/heap/elf_symbols.h"
#include "capture/heap/way_back.h"
#include "os/process/module_file.h"
#include "os/trace/target_memory.h"

namespace assay::capture {
namespace {

constexpr const char* kSamplerName = "assay_heap.so";  // as launched: libassay_heap.so
constexpr const char* kInjectedName = "/memfd:assay-heap";
constexpr const char* kChannelName = "/memfd:assay-heap-channel";

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_NONE;  // no other has an injector yet
#endif

const std::vector<std::string>& wanted_functions() {
  static const std::vector<std::string> names{"malloc",
                                              "dlopen",
                                              "__libc_dlopen_mode",
                                              "dlerror",
                                              "mallctl",
                                              "je_mallctl",
                                              "MallocExtension_GetHeapSample",
                                              "_ZN15MallocExtension8instanceEv",
                                              "mi_malloc"};
  return names;
}

Error unsafe(std::string what, std::string remedy) {
  return {std::move(what), std::move(remedy), 0};
}

bool has_bit(const std::string& status, const char* field, int signal) {
  size_t at = status.find(field);
  if (at == std::string::npos) return false;
  uint64_t mask = std::strtoull(status.c_str() + at + std::strlen(field), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

// State, tracer, privileges: things of the process rather than of its program.
Result<void> check_process(const os::ProcFs& proc, pid_t pid) {
  if (auto running = check_running(proc, pid); !running) return running;
  auto status = proc.status(pid);
  if (!status) return fail("process {} is gone", pid);
  if (status->tracer != 0) {
    return std::unexpected(
        unsafe(fmt::format("process {} is traced already, by process {}", pid, status->tracer),
               "end the debugger, strace or the other profiler first"));
  }
  if (status->seccomp == 1)
    return fail("process {} runs in seccomp's strict mode, which ends it at any new system call",
                pid);
  auto text = proc.read(std::to_string(pid) + "/status");
  if (text && (has_bit(*text, "SigIgn:\t", SIGSEGV) || has_bit(*text, "SigIgn:\t", SIGTRAP)))
    return fail("process {} ignores SIGSEGV or SIGTRAP, by which faults of injected calls are seen",
                pid);
  return {};
}

// The lines of a status file that tell of seccomp: its mode, and how many filters.
std::string seccomp_lines(const os::ProcFs& proc, const std::string& status_file) {
  auto text = proc.read(status_file);
  size_t begin = text ? text->find("Seccomp:") : std::string::npos;
  if (begin == std::string::npos) return "";
  size_t end = text->find('\n', begin);
  if (text->compare(end + 1, 8, "Seccomp_") == 0) end = text->find('\n', end + 1);
  return text->substr(begin, end - begin);
}

// Whether seccomp filters stand before the process's system calls. The sampler runs on every
// thread, and the filters of one are asked: all must have as many.
Result<bool> find_filters(const os::ProcFs& proc, pid_t pid) {
  std::string process = seccomp_lines(proc, fmt::format("{}/status", pid));
  for (pid_t tid : proc.tids(pid)) {
    std::string thread = seccomp_lines(proc, fmt::format("{}/task/{}/status", pid, tid));
    if (!thread.empty() && thread != process)  // empty: it ended meanwhile
      return std::unexpected(forbidden_by_seccomp(pid, "its threads have different ones"));
  }
  return process.starts_with("Seccomp:\t2");
}

Error static_allocator(const ElfFacts& program, const std::string& subject) {
  std::string what = subject + " has its own malloc linked in: a sampler outside would see nothing";
  if (program.functions.contains("mallctl") || program.functions.contains("je_mallctl")) {
    return unsafe(what + " (it is jemalloc)",
                  "start it with MALLOC_CONF=prof:true,prof_active:true if it was built with "
                  "--enable-prof, or link jemalloc as a shared library");
  }
  if (program.functions.contains("MallocExtension_GetHeapSample") ||
      program.functions.contains("_ZN15MallocExtension8instanceEv")) {
    return unsafe(what + " (it is tcmalloc)",
                  "start it with HEAPPROFILE=/tmp/heap, then: assay import /tmp/heap.0001.heap, or "
                  "link tcmalloc as a shared library");
  }
  return unsafe(std::move(what), "link the allocator as a shared library");
}

// How the program was built; `subject` is how messages call it.
Result<void> check_program(const ElfFacts& program, const std::string& subject) {
  if (!program.is_64_bit || (kMachine != EM_NONE && program.machine != kMachine)) {
    return std::unexpected(
        unsafe(subject + " is of another architecture than this assay (32-bit, or emulated)",
               "use an assay built for it"));
  }
  if (program.interpreter.empty()) {
    return std::unexpected(
        unsafe(subject + " is linked statically: no library can be loaded into it",
               "link it dynamically, or build libassay into it"));
  }
  if (program.interpreter.find("ld-musl") != std::string::npos) {
    return std::unexpected(unsafe(subject + " uses musl, and the sampler is built with glibc",
                                  "build Assay with musl (CC=musl-gcc) or the program with glibc"));
  }
  if (program.functions.contains("malloc"))
    return std::unexpected(static_allocator(program, subject));
  return {};
}

struct Mapped {
  os::MapsEntry entry;  // the first of the file: its offset is 0
  std::string path;
};

std::vector<Mapped> mapped_files(const std::vector<os::MapsEntry>& maps) {
  std::vector<Mapped> files;
  for (const os::MapsEntry& entry : maps) {
    if (entry.path.empty() || entry.path[0] != '/' || entry.file_offset != 0) continue;
    if (!files.empty() && files.back().path == entry.path) continue;
    files.push_back({entry, entry.path});
  }
  return files;
}

bool is_code_of(const std::vector<os::MapsEntry>& maps, uint64_t address) {
  for (const os::MapsEntry& entry : maps) {
    if (address >= entry.start && address < entry.end) return entry.executable;
  }
  return false;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool is_libc(const std::string& path) {
  std::string name = file_name(path);
  return name.starts_with("libc.so") || name.starts_with("libc-2");
}

bool may_hold_functions(const std::string& path) {
  std::string name = file_name(path);
  return is_libc(path) || name.starts_with("libdl") || name.find("malloc") != std::string::npos;
}

bool is_sampler(const std::string& path) {
  return path.find(kSamplerName) != std::string::npos || path.starts_with(kInjectedName);
}

uint64_t place(uint64_t base, const ElfFacts& facts, const std::string& name) {
  auto found = facts.functions.find(name);
  return found == facts.functions.end() ? 0 : base - facts.first_vaddr + found->second;
}

// Fills in what one mapped library has.
void take_functions(pid_t pid, const Mapped& file, InjectionPlan& plan) {
  auto opened = os::open_module_file(pid, file.entry.start, file.entry.end, file.path, "");
  if (!opened) return;
  auto facts = read_elf_facts(opened->fd.get(), wanted_functions());
  if (!facts) return;
  uint64_t base = file.entry.start;
  uint64_t malloc = place(base, *facts, "malloc");
  // An allocator of its own goes before libc's.
  if (malloc != 0 && (plan.malloc_entry == 0 || !is_libc(file.path))) {
    plan.malloc_entry = malloc;
    plan.allocator = file.path;
  }
  for (const char* name : {"dlopen", "__libc_dlopen_mode"}) {
    if (plan.dlopen == 0) plan.dlopen = place(base, *facts, name);
  }
  if (plan.dlerror == 0) plan.dlerror = place(base, *facts, "dlerror");
}

// Room for a few instructions behind the code of a mapped file, where its last page is not full:
// bytes that nothing reads. Also where they were used and never put back.
uint64_t find_landing(const os::ProcFs& proc, pid_t pid, const std::vector<os::MapsEntry>& maps) {
  auto memory = os::TargetMemory::open(pid, os::TargetMemory::Access::read, proc.root());
  if (!memory) return 0;
  std::array<uint8_t, kLandingBytes> bytes;
  for (const os::MapsEntry& entry : maps) {
    if (!entry.executable || entry.path.empty() || entry.path[0] != '/') continue;
    uint64_t at = entry.end - bytes.size();
    if (!memory->read(at, bytes.data(), bytes.size())) continue;
    if (bytes == landing_code() || bytes == decltype(bytes){}) return at;
  }
  return 0;
}

// The kernel ignores these where the program does not handle them.
int find_quiet_signal(const os::ProcFs& proc, pid_t pid) {
  auto status = proc.read(fmt::format("{}/status", pid));
  for (int signal : {SIGURG, SIGWINCH, SIGCHLD}) {
    if (status && !has_bit(*status, "SigCgt:\t", signal)) return signal;
  }
  return SIGURG;
}

}  // namespace

Error forbidden_by_seccomp(pid_t pid, const std::string& why) {
  return unsafe(
      fmt::format("process {} runs under a seccomp filter, and {}: attaching might end it", pid,
                  why),
      "start it with the sampler in it, before it sets its filter: assay heap -- COMMAND");
}

Result<void> check_running(const os::ProcFs& proc, pid_t pid) {
  auto stat = proc.stat(pid);
  if (!stat) return fail("process {} is gone", pid);
  if (stat->state == 'Z' || stat->state == 'X') return fail("process {} has ended", pid);
  if (stat->state != 'T' && stat->state != 't') return {};
  return std::unexpected(unsafe(fmt::format("process {} is stopped: nothing in it would run", pid),
                                fmt::format("kill -CONT {}", pid)));
}

uint64_t find_sampler(const os::ProcFs& proc, pid_t pid) {
  auto maps = proc.maps(pid);
  if (!maps) return 0;
  for (const Mapped& file : mapped_files(*maps)) {
    bool channel = file.path.starts_with(kChannelName);
    if (is_sampler(file.path) && !channel) return file.entry.start;
  }
  return 0;
}

std::optional<os::MapsEntry> find_channel(const os::ProcFs& proc, pid_t pid) {
  auto maps = proc.maps(pid);
  if (!maps) return std::nullopt;
  for (const os::MapsEntry& entry : *maps) {
    if (entry.path.starts_with(kChannelName)) return entry;
  }
  return std::nullopt;
}

Result<SamplerFunctions> read_mapped_functions(const os::ProcFs& proc, pid_t pid) {
  auto maps = proc.maps(pid);
  if (!maps) return std::unexpected(maps.error());
  for (const Mapped& file : mapped_files(*maps)) {
    if (!is_sampler(file.path) || file.path.starts_with(kChannelName)) continue;
    return read_sampler_functions(fmt::format("{}/{}/map_files/{:x}-{:x}", proc.root(), pid,
                                              file.entry.start, file.entry.end));
  }
  return fail("process {} has no sampler in it", pid);
}

Result<SamplerFunctions> read_sampler_functions(const std::string& library) {
  UniqueFd fd(::open(library.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open {}", library);
  auto facts = read_elf_facts(fd.get(), {"assay_heap_attach", "assay_heap_detach"});
  if (!facts) return fail("{}: {}", library, facts.error().what);
  SamplerFunctions functions;
  for (auto [name, into] : {std::pair{"assay_heap_attach", &functions.attach},
                            std::pair{"assay_heap_detach", &functions.detach}}) {
    auto found = facts->functions.find(name);
    if (found == facts->functions.end()) return fail("{} has no function {}", library, name);
    *into = found->second - facts->first_vaddr;
  }
  return functions;
}

Result<void> check_same_process(const os::ProcFs& proc, const InjectionPlan& plan) {
  auto stat = proc.stat(plan.pid);
  if (stat && stat->start_ticks == plan.start_ticks) return {};
  return fail("process {} is gone", plan.pid);
}

Result<InjectionPlan> plan_injection(const os::ProcFs& proc, pid_t pid, uint64_t start_ticks) {
  auto stat = proc.stat(pid);
  if (!stat || (start_ticks != 0 && stat->start_ticks != start_ticks))
    return fail("process {} is gone", pid);
  if (auto fine = check_process(proc, pid); !fine) return std::unexpected(fine.error());
  UniqueFd exe(::open(fmt::format("{}/{}/exe", proc.root(), pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!exe.valid()) {
    return fail_with_remedy(
        fmt::format("the program of process {} cannot be read: {}", pid, std::strerror(errno)),
        "run as root (sudo assay heap …), or as the user that the server runs as", errno);
  }
  auto program = read_elf_facts(exe.get(), wanted_functions());
  if (!program) return fail("the program of process {}: {}", pid, program.error().what);
  if (kMachine == EM_NONE)
    return fail("attaching is written for x86-64 only; start the program with: assay heap -- …");
  if (auto fine = check_program(*program, fmt::format("the program of process {}", pid)); !fine)
    return std::unexpected(fine.error());

  auto maps = proc.maps(pid);
  if (!maps) return std::unexpected(maps.error());
  auto filtered = find_filters(proc, pid);
  if (!filtered) return std::unexpected(filtered.error());
  InjectionPlan plan;
  plan.pid = pid;
  plan.start_ticks = stat->start_ticks;
  plan.is_filtered = *filtered;
  for (const Mapped& file : mapped_files(*maps)) {
    if (is_sampler(file.path)) continue;
    if (may_hold_functions(file.path)) take_functions(pid, file, plan);
  }
  plan.library_base = find_sampler(proc, pid);
  plan.landing = find_landing(proc, pid, *maps);
  plan.quiet_signal = find_quiet_signal(proc, pid);
  if (plan.landing == 0) {
    return fail_with_remedy(
        fmt::format("no page of process {}'s code has room for injected calls to return to", pid),
        "start it with: assay heap -- COMMAND");
  }
  bool whole = plan.malloc_entry != 0 && plan.dlopen != 0;
  if (!whole || !is_code_of(*maps, plan.malloc_entry) || !is_code_of(*maps, plan.dlopen)) {
    return std::unexpected(unsafe(
        fmt::format("malloc and dlopen were not found in process {}: it may have replaced its C "
                    "library's file, or use none",
                    pid),
        "restart the server with: assay heap -- COMMAND"));
  }
  return plan;
}

Result<void> check_launchable(const std::string& program) {
  UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};  // not found, or a script of a shell: starting it tells
  struct stat file {};
  if (fstat(fd.get(), &file) == 0 && (file.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0) {
    return std::unexpected(unsafe(
        fmt::format("{} is setuid: it ignores what is preloaded", program), "run it as root"));
  }
  auto facts = read_elf_facts(fd.get(), wanted_functions());
  return facts ? check_program(*facts, program) : Result<void>{};
}

}  // namespace assay::capture
