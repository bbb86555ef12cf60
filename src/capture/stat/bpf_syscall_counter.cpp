#include "capture/stat/syscall_counter.h"

#ifdef ASSAY_WITHOUT_BPF

namespace assay::capture {

Result<std::unique_ptr<SyscallCounter>> open_bpf_syscall_counter(const std::vector<pid_t>&) {
  return fail("this assay was built without its BPF programs: " ASSAY_WITHOUT_BPF);
}

}  // namespace assay::capture

#else

#include <numeric>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "capture/bpf/syscalls.skel.h"

namespace assay::capture {
namespace {

struct Destroy {
  void operator()(syscalls_bpf* skeleton) const { syscalls_bpf__destroy(skeleton); }
};

int say_nothing(libbpf_print_level, const char*, va_list) {
  return 0;
}

class BpfSyscallCounter final : public SyscallCounter {
 public:
  Result<void> open(const std::vector<pid_t>& pids) {
    libbpf_set_print(say_nothing);
    skeleton_.reset(syscalls_bpf__open());
    if (!skeleton_) return fail_errno("the BPF program cannot be opened");
    if (int code = syscalls_bpf__load(skeleton_.get()); code != 0) return refused(-code);
    int watched = bpf_map__fd(skeleton_->maps.watched);
    for (pid_t pid : pids) {
      auto tgid = static_cast<uint32_t>(pid);
      uint8_t yes = 1;
      if (bpf_map_update_elem(watched, &tgid, &yes, BPF_ANY) != 0)
        return fail("more processes than the BPF program can watch");
    }
    if (int code = syscalls_bpf__attach(skeleton_.get()); code != 0) return refused(-code);
    return {};
  }

  SyscallCalls read() override {
    SyscallCalls calls;
    int map = bpf_map__fd(skeleton_->maps.calls);
    std::vector<uint64_t> by_cpu(static_cast<size_t>(std::max(1, libbpf_num_possible_cpus())));
    uint64_t key = 0, next = 0;
    for (bool first = true; bpf_map_get_next_key(map, first ? nullptr : &key, &next) == 0;
         first = false) {
      key = next;
      if (bpf_map_lookup_elem(map, &key, by_cpu.data()) != 0) continue;
      uint64_t count = std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
      calls.all += count;
      calls.by_number[static_cast<uint32_t>(key)] += count;
    }
    return calls;
  }
  const char* source() const override { return "BPF"; }

 private:
  static std::unexpected<Error> refused(int code) {
    return fail_with_remedy(
        fmt::format("the kernel does not take the BPF program: {}", std::strerror(code)),
        code == EPERM || code == EACCES ? "run as root, or with CAP_BPF and CAP_PERFMON" : "",
        code);
  }

  std::unique_ptr<syscalls_bpf, Destroy> skeleton_;
};

}  // namespace

Result<std::unique_ptr<SyscallCounter>> open_bpf_syscall_counter(const std::vector<pid_t>& pids) {
  auto counter = std::make_unique<BpfSyscallCounter>();
  if (auto opened = counter->open(pids); !opened) return std::unexpected(opened.error());
  return counter;
}

}  // namespace assay::capture

#endif
