#include "capture/bpf/bpf_programs.h"

#ifdef ASSAY_WITHOUT_BPF

namespace assay::capture {

Result<std::unique_ptr<BpfPrograms>> BpfPrograms::load(const BpfOptions&) {
  return fail_with_remedy("this assay was built without its BPF programs: " ASSAY_WITHOUT_BPF,
                          "scripts/install-deps --only build, then build again");
}

}  // namespace assay::capture

#else

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "capture/bpf/assay.skel.h"
#include "capture/bpf/bpf_ring.h"
#include "capture/bpf/load_log.h"
#include "capture/bpf/record_batch.h"
#include "os/events/perf_event.h"

namespace assay::capture {
namespace {

// libbpf's messages about the current load, for the error message.
thread_local LoadLog load_log;

int keep_words(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return 0;
  std::string text(static_cast<size_t>(length) + 1, '\0');
  vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  load_log.add(text);
  return 0;
}

Error explain(const char* what, int code) {
  return load_error(what, code, load_log);
}

bool parse_switch_arguments() {
  btf* types = btf__load_vmlinux_btf();
  if (types == nullptr) return false;
  bool tells = false;
  int id = btf__find_by_name_kind(types, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
  if (id > 0) {
    const btf_type* type = btf__type_by_id(types, static_cast<uint32_t>(id));
    type = btf__type_by_id(types, type->type);
    if (type != nullptr && btf_is_ptr(type)) type = btf__type_by_id(types, type->type);
    tells = type != nullptr && btf_is_func_proto(type) && btf_vlen(type) >= 5;
  }
  btf__free(types);
  return tells;
}

// sched_switch has the state of the thread that leaves as its fourth argument since Linux 5.18;
// older kernels may have it, too, because distributions backported it.
bool switch_tells_state() {
  utsname system{};
  uname(&system);
  return std::atoi(system.release) >= 6 || parse_switch_arguments();
}

class Mapped {
 public:
  Mapped() = default;
  Mapped(void* at, size_t bytes) : at_(at), bytes_(bytes) {}
  Mapped(Mapped&& other) noexcept { *this = std::move(other); }
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapped() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  void* at() const { return at_; }

 private:
  void* at_ = nullptr;
  size_t bytes_ = 0;
};

Result<Mapped> map_array(int fd, size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno("cannot map a BPF array");
  return Mapped(at, bytes);
}

class LoadedPrograms final : public BpfPrograms {
 public:
  explicit LoadedPrograms(const BpfOptions& options) : options_(options) {}
  ~LoadedPrograms() override {
    detach();
    bpf_link__destroy(iterator_);
  }

  Result<void> open();
  Result<void> attach(const perf_event_attr& on_cpu) override;
  Result<void> reopen_cpu(int cpu) override;
  void detach() override;
  bool add_process(pid_t pid, uint64_t code) override;
  void update_process(pid_t pid, uint64_t code) override;
  std::span<bpf::range> ranges() override {
    return {static_cast<bpf::range*>(ranges_.at()), bpf::kMostRanges};
  }
  uint32_t* new_chunk(uint32_t number) override;
  BpfCounters counters() const override;
  std::vector<bpf::wait_record> open_waits() override;
  std::vector<bpf::thread_registers> thread_registers() override;
  size_t ring_bytes() const override { return ring_bytes_ * rings_.size(); }
  bool takes_truth() const override { return options_.truth_one_in > 0; }
  void drain(Pressure pressure, Batch& batch) override;

 private:
  struct CloseSkeleton {
    void operator()(assay_bpf* skeleton) const { assay_bpf__destroy(skeleton); }
  };
  struct Ring {
    UniqueFd fd;
    std::unique_ptr<BpfRing> ring;
  };

  uint64_t counter(uint32_t which) const;
  void next_generation() { std::atomic_ref(skeleton_->data->generation).fetch_add(1); }
  Result<void> create_rings();
  Result<void> attach_samples(int cpu);

  BpfOptions options_;
  std::unique_ptr<assay_bpf, CloseSkeleton> skeleton_;
  Mapped ranges_;
  size_t ring_bytes_ = 0;
  std::vector<Ring> rings_;
  std::vector<Mapped> chunks_;
  perf_event_attr on_cpu_{};
  std::vector<bpf_link*> links_;
  bpf_link* iterator_ = nullptr;
  uint64_t told_lost_ = 0;
};

// Features that the programs need and older kernels lack. Checked first, because the verifier's own
// message ("invalid func unknown#181") does not help the user.
Result<void> require_features() {
  if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, nullptr) == 0)
    return fail("this kernel has no task storage for BPF programs (Linux 5.11)");
  if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, nullptr) == 0)
    return fail("this kernel has no bpf_loop (Linux 5.17)");
  return {};
}

Result<void> LoadedPrograms::open() {
  load_log = {};
  libbpf_set_print(keep_words);
  if (auto has = require_features(); !has) return has;
  skeleton_.reset(assay_bpf__open());
  if (!skeleton_) return std::unexpected(explain("the BPF programs cannot be opened", errno));
  skeleton_->rodata->follow_children = options_.children;
  skeleton_->rodata->trace_wakeups = options_.wakeups;
  skeleton_->rodata->check_cache = options_.check_cache;
  skeleton_->rodata->truth_one_in = options_.truth_one_in;
  skeleton_->rodata->has_prev_state = switch_tells_state();
  if (options_.truth_one_in > 0) skeleton_->rodata->raw_per_slice = 1000;
  int possible = libbpf_num_possible_cpus();
  if (possible < 1) return fail("the number of CPUs is not known");
  bpf_map__set_max_entries(skeleton_->maps.rings, static_cast<uint32_t>(possible));
  ring_bytes_ = ring_bytes_of(options_.ring_budget_bytes, options_.cpus.size());
  if (int code = assay_bpf__load(skeleton_.get()); code != 0)
    return std::unexpected(explain("the kernel does not take the BPF programs", -code));
  auto ranges =
      map_array(bpf_map__fd(skeleton_->maps.ranges), sizeof(bpf::range) * bpf::kMostRanges);
  if (!ranges) return std::unexpected(ranges.error());
  ranges_ = std::move(*ranges);
  return create_rings();
}

Result<void> LoadedPrograms::create_rings() {
  for (int cpu : options_.cpus) {
    int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "assay_ring", 0, 0,
                            static_cast<uint32_t>(ring_bytes_), nullptr);
    if (fd < 0) return std::unexpected(explain("no memory for a BPF ring buffer", -fd));
    Ring ring{UniqueFd(fd), nullptr};
    auto mapped = BpfRing::map(fd, ring_bytes_);
    if (!mapped) return std::unexpected(mapped.error());
    ring.ring = std::move(*mapped);
    auto key = static_cast<uint32_t>(cpu);
    if (int code = bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rings), &key, &fd, BPF_ANY);
        code != 0)
      return std::unexpected(explain("a BPF ring buffer cannot be given to its CPU", -code));
    rings_.push_back(std::move(ring));
  }
  return {};
}

Result<void> LoadedPrograms::attach(const perf_event_attr& on_cpu) {
  load_log = {};
  // Fork and exit programs first, so that no process is missed.
  for (bpf_program* program :
       {skeleton_->progs.on_fork, skeleton_->progs.on_exec, skeleton_->progs.on_exit,
        skeleton_->progs.on_waking, skeleton_->progs.on_switch}) {
    if (program == skeleton_->progs.on_waking && !options_.wakeups) continue;
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) return std::unexpected(explain("a BPF program cannot be attached", errno));
    links_.push_back(link);
  }
  iterator_ = bpf_program__attach_iter(skeleton_->progs.list_open_waits, nullptr);
  if (iterator_ == nullptr)
    return std::unexpected(explain("the BPF task iterator cannot be attached", errno));
  open_waits();  // registers the existing threads
  on_cpu_ = on_cpu;
  for (int cpu : options_.cpus) {
    auto attached = attach_samples(cpu);
    // A CPU that is off just now is sampled when it is back (reopen_cpu()).
    if (!attached && attached.error().code != ENODEV) return attached;
  }
  return {};
}

Result<void> LoadedPrograms::attach_samples(int cpu) {
  auto event = os::real_perf_kernel().open(on_cpu_, -1, cpu);
  if (!event) return std::unexpected(event.error());
  bpf_link* link = bpf_program__attach_perf_event(skeleton_->progs.on_sample, event->get());
  if (link == nullptr)
    return std::unexpected(explain("the BPF program cannot be attached to samples", errno));
  links_.push_back(link);
  event->release();  // the link closes it
  return {};
}

Result<void> LoadedPrograms::reopen_cpu(int cpu) {
  if (std::ranges::find(options_.cpus, cpu) == options_.cpus.end())
    return fail("it was not online when the capture began");
  return attach_samples(cpu);
}

void LoadedPrograms::detach() {
  for (auto it = links_.rbegin(); it != links_.rend(); ++it) bpf_link__destroy(*it);
  links_.clear();
}

bool LoadedPrograms::add_process(pid_t pid, uint64_t code) {
  auto key = static_cast<uint32_t>(pid);
  bpf::process process{code, key, 0};
  int map = bpf_map__fd(skeleton_->maps.processes);
  // A child that the programs have followed is in the table already, with its threads.
  bool is_new = bpf_map_update_elem(map, &key, &process, BPF_NOEXIST) == 0;
  bool is_kept = is_new || bpf_map_update_elem(map, &key, &process, BPF_ANY) == 0;
  next_generation();
  if (is_new) open_waits();
  return is_kept;
}

void LoadedPrograms::update_process(pid_t pid, uint64_t code) {
  auto key = static_cast<uint32_t>(pid);
  bpf::process process{code, key, 0};
  bpf_map_update_elem(bpf_map__fd(skeleton_->maps.processes), &key, &process, BPF_EXIST);
  next_generation();
}

uint32_t* LoadedPrograms::new_chunk(uint32_t number) {
  LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
  constexpr uint32_t kBytes = bpf::kChunkWords * sizeof(uint32_t);
  UniqueFd fd(
      bpf_map_create(BPF_MAP_TYPE_ARRAY, "assay_tables", sizeof(uint32_t), kBytes, 1, &options));
  if (!fd.valid()) return nullptr;
  auto memory = map_array(fd.get(), kBytes);
  if (!memory) return nullptr;
  int value = fd.get();
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.tables), &number, &value, BPF_ANY) != 0)
    return nullptr;
  chunks_.push_back(std::move(*memory));  // the outer map keeps the inner one
  return static_cast<uint32_t*>(chunks_.back().at());
}

uint64_t LoadedPrograms::counter(uint32_t which) const {
  std::vector<uint64_t> values(static_cast<size_t>(libbpf_num_possible_cpus()));
  bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.counters), &which, values.data());
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

BpfCounters LoadedPrograms::counters() const {
  BpfCounters sums{};
  for (uint32_t i = 0; i < bpf::kCounters; ++i) sums[i] = counter(i);
  return sums;
}

namespace {

// The output of a kernel iterator, as records.
template <class Record>
std::vector<Record> read_records(bpf_link* iterator) {
  std::vector<Record> records;
  if (iterator == nullptr) return records;
  UniqueFd fd(bpf_iter_create(bpf_link__fd(iterator)));
  if (!fd.valid()) return records;
  std::vector<std::byte> bytes;
  constexpr size_t kStep = 64 * sizeof(Record);
  for (;;) {
    size_t before = bytes.size();
    bytes.resize(before + kStep);
    ssize_t got = read(fd.get(), bytes.data() + before, kStep);
    if (got < 0 && errno == EAGAIN) got = 0;
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(0, got)));
    if (got <= 0) break;
  }
  records.resize(bytes.size() / sizeof(Record));
  std::memcpy(records.data(), bytes.data(), records.size() * sizeof(Record));
  return records;
}

}  // namespace

std::vector<bpf::wait_record> LoadedPrograms::open_waits() {
  return read_records<bpf::wait_record>(iterator_);
}

std::vector<bpf::thread_registers> LoadedPrograms::thread_registers() {
  bpf_link* iterator = bpf_program__attach_iter(skeleton_->progs.list_registers, nullptr);
  auto records = read_records<bpf::thread_registers>(iterator);
  bpf_link__destroy(iterator);
  return records;
}

void LoadedPrograms::drain(Pressure pressure, Batch& batch) {
  for (Ring& ring : rings_) {
    bool sane = ring.ring->drain(
        [&](std::span<const std::byte> record) { take_record(record, pressure, batch); });
    if (!sane) ++batch.malformed;
  }
  uint64_t lost = counter(bpf::kCountRingFull);
  if (lost > told_lost_) batch.ring_losses.push_back({-1, false, lost - told_lost_});
  told_lost_ = lost;
}

}  // namespace

Result<std::unique_ptr<BpfPrograms>> BpfPrograms::load(const BpfOptions& options) {
  auto programs = std::make_unique<LoadedPrograms>(options);
  if (auto opened = programs->open(); !opened) return std::unexpected(opened.error());
  return programs;
}

}  // namespace assay::capture

#endif
