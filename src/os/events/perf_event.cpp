#include "os/events/perf_event.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::os {
namespace {

class MappedRing final : public RingMemory {
 public:
  MappedRing(void* base, size_t bytes, size_t page) : base_(base), bytes_(bytes), page_(page) {}
  MappedRing(const MappedRing&) = delete;
  MappedRing& operator=(const MappedRing&) = delete;
  ~MappedRing() override { munmap(base_, bytes_); }

  perf_event_mmap_page* control() override { return static_cast<perf_event_mmap_page*>(base_); }
  std::span<const std::byte> data() override {
    return {static_cast<const std::byte*>(base_) + page_, bytes_ - page_};
  }

 private:
  void* base_;
  size_t bytes_;
  size_t page_;
};

long open_event(const perf_event_attr& attr, pid_t pid, int cpu) {
  perf_event_attr copy = attr;  // the kernel writes into it
  return syscall(SYS_perf_event_open, &copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

class RealPerfKernel final : public PerfKernel {
 public:
  Result<UniqueFd> open(const perf_event_attr& attr, pid_t pid, int cpu) override {
    perf_event_attr copy = attr;
    long fd = open_event(copy, pid, cpu);
    while (fd < 0 && errno == EINVAL && drop_newest_request(copy)) fd = open_event(copy, pid, cpu);
    if (fd < 0) return fail_errno("perf_event_open (pid {}, cpu {})", pid, cpu);
    return UniqueFd(static_cast<int>(fd));
  }

  Result<std::unique_ptr<RingMemory>> map_ring(int fd, size_t data_bytes) override {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t bytes = data_bytes + page;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return fail_errno("cannot map a perf ring of {} bytes", data_bytes);
    return std::make_unique<MappedRing>(base, bytes, page);
  }

  Result<void> redirect_output(int fd, int into_fd) override {
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, into_fd) != 0)
      return fail_errno("PERF_EVENT_IOC_SET_OUTPUT");
    return {};
  }
  Result<void> enable(int fd) override {
    if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0) return fail_errno("PERF_EVENT_IOC_ENABLE");
    return {};
  }
  Result<void> disable(int fd) override {
    if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) != 0) return fail_errno("PERF_EVENT_IOC_DISABLE");
    return {};
  }
  Result<uint64_t> id(int fd) override {
    uint64_t value = 0;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &value) != 0) return fail_errno("PERF_EVENT_IOC_ID");
    return value;
  }
  Result<uint64_t> lost(int fd) override {
    struct {
      uint64_t value;
      uint64_t lost;
    } counts{};
    if (read(fd, &counts, sizeof counts) != sizeof counts)
      return fail_errno("this kernel does not count lost records");
    return counts.lost;
  }
};

}  // namespace

bool drop_newest_request(perf_event_attr& attr) {
  if ((attr.read_format & PERF_FORMAT_LOST) != 0) {  // Linux 6.0
    attr.read_format &= ~static_cast<uint64_t>(PERF_FORMAT_LOST);
    return true;
  }
  if (attr.build_id != 0) {  // Linux 5.12
    attr.build_id = 0;
    return true;
  }
  return false;
}

PerfKernel& real_perf_kernel() {
  static RealPerfKernel kernel;
  return kernel;
}

}  // namespace assay::os
