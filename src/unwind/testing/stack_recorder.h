// StackRecorder: runs a program under perf_event and keeps every raw stack with its address space,
// for tests and benches of this room. Needs permission for perf_event_open; open() says when it has
// none.
//
// In: a command line; out: records in time order: what was mapped, and samples with registers, the
// copied stack and the kernel's chain. Not for captures: it keeps everything in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/address_space.h"
#include "model/module.h"
#include "os/process/module_file.h"
#include "unwind/table/table.h"
#include "unwind/table/table_builder.h"
#include "unwind/unwinder.h"

namespace assay::unwind::testing {

struct RecordedEvent {
  enum class Kind { map, fork, exec, sample };
  Kind kind = Kind::sample;
  uint64_t time = 0;
  pid_t pid = 0, tid = 0, parent = 0;
  uint64_t start = 0, end = 0, file_offset = 0;  // map
  std::string path;
  model::UserRegisters registers;  // sample
  std::vector<std::byte> copy;
  std::vector<uint64_t> chain;
};

struct RecordOptions {
  uint64_t period_ns = 1'000'000;
  uint32_t copy_bytes = 32768;
  bool chain = true;
  uint64_t max_samples = 1'000'000;
};

class StackRecorder {
 public:
  using Options = RecordOptions;

  // Starts `argv` with output to /dev/null, stopped until run() lets it go.
  static Result<std::unique_ptr<StackRecorder>> start(const std::vector<std::string>& argv,
                                                      Options options = {}) {
    auto recorder = std::unique_ptr<StackRecorder>(new StackRecorder(options));
    if (auto started = recorder->spawn(argv); !started) return std::unexpected(started.error());
    if (auto opened = recorder->open_events(); !opened) {
      recorder->kill_child();
      return std::unexpected(opened.error());
    }
    return recorder;
  }
  ~StackRecorder() { kill_child(); }

  pid_t pid() const { return pid_; }

  // Records until the program exits, `stop` says so, or max_samples are there. Then kills it.
  std::vector<RecordedEvent> run(const std::function<bool()>& stop = [] { return false; }) {
    char go = 1;
    if (::write(go_.get(), &go, 1) != 1) kill_child();
    uint64_t samples = 0;
    while (true) {
      for (Ring& ring : rings_) samples += drain(ring);
      int status;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        exit_status_ = status;
        break;
      }
      if (samples >= options_.max_samples || stop()) break;
      ::usleep(5000);
    }
    kill_child();
    for (Ring& ring : rings_) drain(ring);
    std::ranges::stable_sort(events_, {}, &RecordedEvent::time);
    return std::move(events_);
  }
  int exit_status() const { return exit_status_; }

 private:
  struct Ring {
    UniqueFd fd;
    std::byte* base = nullptr;
  };
  static constexpr size_t kPage = 4096, kDataBytes = size_t{4096} << 10;
  // perf's register numbers (asm/perf_regs.h) in the order of their bits, and their DWARF numbers.
  static constexpr int kPerfRegs[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19, 20, 21, 22, 23};
  static constexpr int kDwarfRegs[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};

  explicit StackRecorder(Options options) : options_(options) {}

  Result<void> spawn(const std::vector<std::string>& argv) {
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe");
    UniqueFd wait_end(pipe_fds[0]);
    go_ = UniqueFd(pipe_fds[1]);
    std::vector<char*> args;
    for (const auto& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) return fail_errno("cannot fork");
    if (pid_ == 0) {
      ::close(go_.get());
      char go;
      if (::read(wait_end.get(), &go, 1) != 1) ::_exit(126);
      int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 0), ::dup2(null, 1), ::dup2(null, 2);
      ::execvp(args[0], args.data());
      ::_exit(127);
    }
    return {};
  }

  Result<void> open_events() {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = options_.period_ns;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    if (!options_.chain) attr.sample_type &= ~uint64_t{PERF_SAMPLE_CALLCHAIN};
    attr.exclude_callchain_kernel = 1;
    attr.sample_stack_user = options_.copy_bytes;
    for (int bit : kPerfRegs) attr.sample_regs_user |= uint64_t{1} << bit;
    attr.disabled = attr.enable_on_exec = attr.inherit = 1;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.sample_id_all = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.wakeup_events = 1000;
    for (int cpu = 0; cpu < static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF)); ++cpu) {
      Ring ring;
      ring.fd = UniqueFd(static_cast<int>(
          ::syscall(SYS_perf_event_open, &attr, pid_, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
      if (!ring.fd.valid()) return fail_errno("perf_event_open");
      void* at =
          ::mmap(nullptr, kPage + kDataBytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
      if (at == MAP_FAILED) return fail_errno("cannot map the ring");
      ring.base = static_cast<std::byte*>(at);
      rings_.push_back(std::move(ring));
    }
    return {};
  }

  void kill_child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &exit_status_, 0);
    pid_ = 0;
  }

  uint64_t drain(Ring& ring) {
    auto* meta = reinterpret_cast<perf_event_mmap_page*>(ring.base);
    uint64_t head = __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE), tail = meta->data_tail;
    uint64_t samples = 0;
    std::vector<std::byte> record;
    while (tail < head) {
      auto copy = [&](uint64_t from, void* to, size_t n) {
        for (size_t i = 0; i < n; ++i) {
          static_cast<std::byte*>(to)[i] = ring.base[kPage + (from + i) % kDataBytes];
        }
      };
      perf_event_header header;
      copy(tail, &header, sizeof header);
      if (header.size < sizeof header) break;
      record.resize(header.size);
      uint64_t at = tail % kDataBytes, first = std::min<uint64_t>(header.size, kDataBytes - at);
      std::memcpy(record.data(), ring.base + kPage + at, first);
      std::memcpy(record.data() + first, ring.base + kPage, header.size - first);
      samples += parse(header, record);
      tail += header.size;
    }
    __atomic_store_n(&meta->data_tail, tail, __ATOMIC_RELEASE);
    return samples;
  }

  template <class T>
  static T get(const std::vector<std::byte>& r, size_t at) {
    T value{};
    if (at + sizeof value <= r.size()) std::memcpy(&value, r.data() + at, sizeof value);
    return value;
  }

  // With sample_id_all every other record ends in {pid, tid, time}.
  uint64_t parse(const perf_event_header& header, const std::vector<std::byte>& r) {
    RecordedEvent e;
    e.time = get<uint64_t>(r, r.size() - 8);
    e.pid = get<int32_t>(r, 8);
    e.tid = get<int32_t>(r, 12);
    switch (header.type) {
      case PERF_RECORD_MMAP2: {
        e.kind = RecordedEvent::Kind::map;
        e.start = get<uint64_t>(r, 16);
        e.end = e.start + get<uint64_t>(r, 24);
        e.file_offset = get<uint64_t>(r, 32);
        auto text = reinterpret_cast<const char*>(r.data()) + 72;
        e.path.assign(text, ::strnlen(text, r.size() - 72));
        break;
      }
      case PERF_RECORD_FORK:
        e.kind = RecordedEvent::Kind::fork;
        e.parent = get<int32_t>(r, 12);
        if (e.parent == e.pid) return 0;  // a thread
        break;
      case PERF_RECORD_COMM:
        if (!(header.misc & PERF_RECORD_MISC_COMM_EXEC)) return 0;
        e.kind = RecordedEvent::Kind::exec;
        break;
      case PERF_RECORD_SAMPLE:
        parse_sample(r, e);
        break;
      default:
        return 0;
    }
    bool is_sample = e.kind == RecordedEvent::Kind::sample;
    events_.push_back(std::move(e));
    return is_sample;
  }

  void parse_sample(const std::vector<std::byte>& r, RecordedEvent& e) {
    size_t at = 16;
    e.time = get<uint64_t>(r, at), at += 8;
    if (options_.chain) {
      auto n = get<uint64_t>(r, at);
      at += 8;
      for (uint64_t i = 0; i < n && at + 8 <= r.size(); ++i, at += 8) {
        auto pc = get<uint64_t>(r, at);
        if (pc < static_cast<uint64_t>(-4096)) e.chain.push_back(pc);
      }
    }
    auto abi = get<uint64_t>(r, at);
    at += 8;
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
      for (int dwarf : kDwarfRegs) e.registers.set(dwarf, get<uint64_t>(r, at)), at += 8;
    }
    auto size = get<uint64_t>(r, at);
    at += 8;
    if (size == 0 || at + size + 8 > r.size()) return;
    auto used = std::min(get<uint64_t>(r, at + size), size);
    e.copy.assign(r.begin() + static_cast<ptrdiff_t>(at),
                  r.begin() + static_cast<ptrdiff_t>(at + used));
  }

  Options options_;
  pid_t pid_ = 0;
  int exit_status_ = 0;
  UniqueFd go_;
  std::vector<Ring> rings_;
  std::vector<RecordedEvent> events_;
};

// The table of a module's file, or of the vdso; null when there is none.
inline std::shared_ptr<const Table> load_table(const model::Module& module) {
  auto from = [&](Result<std::unique_ptr<elf::ElfFile>> image) -> std::shared_ptr<const Table> {
    if (!image) return nullptr;
    auto bytes = build_table(**image, module.build_id);
    if (!bytes) return nullptr;
    auto table = Table::from_bytes(std::move(*bytes));
    return table ? *table : nullptr;
  };
  if (module.kind == model::ModuleKind::vdso) {
    return from(elf::ElfFile::open_memory(os::vdso_image().bytes));
  }
  if (module.kind != model::ModuleKind::elf) return nullptr;
  UniqueFd fd(::open(module.path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() ? from(elf::ElfFile::open(fd.get())) : nullptr;
}

// Plays records back: keeps each process's address space, names modules, and calls `on_map` for
// each new mapping and `on_sample` for each sample.
class Playback {
 public:
  using OnMap = std::function<void(pid_t, const model::Mapping&, const model::Module&)>;
  using OnSample = std::function<void(const RecordedEvent&, const model::AddressSpace&)>;

  void play(const std::vector<RecordedEvent>& events, const OnMap& on_map,
            const OnSample& on_sample) {
    for (const RecordedEvent& e : events) {
      switch (e.kind) {
        case RecordedEvent::Kind::fork:
          spaces_[e.pid] = spaces_[e.parent];
          break;
        case RecordedEvent::Kind::exec:
          spaces_[e.pid].clear();
          break;
        case RecordedEvent::Kind::map: {
          model::Mapping mapping{e.start, e.end, e.file_offset, intern(e.path, e.pid)};
          if (modules_[mapping.module].kind == model::ModuleKind::vdso) mapping.file_offset = 0;
          spaces_[e.pid].map(mapping);
          on_map(e.pid, mapping, modules_[mapping.module]);
          break;
        }
        case RecordedEvent::Kind::sample:
          on_sample(e, spaces_[e.pid]);
          break;
      }
    }
  }
  const model::ModuleTable& modules() const { return modules_; }

 private:
  model::ModuleId intern(const std::string& path, pid_t pid) {
    if (path == "[vdso]") return modules_.intern(model::ModuleKind::vdso, path, "");
    if (path.empty() || path[0] != '/' || path.starts_with("/memfd:") || path == "//anon") {
      return modules_.intern(model::ModuleKind::anonymous, "[anon " + std::to_string(pid) + "]",
                             "");
    }
    auto& build_id = build_ids_[path];
    if (build_id.empty()) {
      UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (auto id = os::read_build_id(fd.get())) build_id = *id;
    }
    return modules_.intern(model::ModuleKind::elf, path, build_id);
  }

  model::ModuleTable modules_;
  std::map<pid_t, model::AddressSpace> spaces_;
  std::map<std::string, std::string> build_ids_;
};

}  // namespace assay::unwind::testing
