#include "inject/preload/channel_writer.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/core/syscalls.h"

namespace assay::inject {

constinit ChannelWriter channel_writer;

namespace {

constexpr uint64_t kMinRingBytes = 64 << 10, kMaxRingBytes = uint64_t{1} << 30;
constexpr uint64_t kRoomForOne = sizeof(HeapAllocRecord) + kMaxHeapFrames * 8;
constexpr int kCloseLooks = 1000;
constexpr long kCloseLookNs = 100'000;

uint32_t own_pid() {
  return static_cast<uint32_t>(raw_syscall(SYS_getpid));
}

void* map_shared(int fd, uint64_t bytes) {
  long at =
      raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return is_error(at) ? nullptr : reinterpret_cast<void*>(at);
}

long open_file(const char* path, int flags) {
  return raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags | O_CLOEXEC, 0600, 0,
                     0);
}

// The file with all its bytes: a page that the file system has no room for would end the program
// when it is written to. False: the file is empty.
bool reserve_file(long fd, uint64_t bytes) {
  constexpr int kTries = 100;  // signals interrupt it
  bool made = raw_syscall(SYS_ftruncate, fd, static_cast<long>(bytes)) == 0;
  long taken = -EINTR;
  for (int i = 0; made && taken == -EINTR && i < kTries; ++i)
    taken = raw_syscall(SYS_fallocate, fd, 0, 0, static_cast<long>(bytes), 0, 0);
  if (made && taken == -EOPNOTSUPP) {  // then by writing
    static const char page[4096]{};
    taken = 0;
    for (uint64_t at = 0; at < bytes && taken == 0; at += sizeof page) {
      long wrote = raw_syscall(SYS_pwrite64, fd, reinterpret_cast<long>(page), sizeof page,
                               static_cast<long>(at), 0, 0);
      if (wrote != static_cast<long>(sizeof page)) taken = -ENOSPC;
    }
  }
  if (made && taken == 0) return true;
  raw_syscall(SYS_ftruncate, fd, 0);
  return false;
}

}  // namespace

// Holds the channel mapped while it is used. Null when there is none, or when it is another
// process's.
class ChannelUse {
 public:
  explicit ChannelUse(const ChannelWriter& writer) : writer_(writer) {
    // After closing, no new writer is counted: close waits only for those inside.
    if (!writer_.is_open()) return;
    is_counted_ = true;
    writer_.users_.fetch_add(1, std::memory_order_seq_cst);
    header_ = writer_.header_.load(std::memory_order_seq_cst);
    if (header_ && writer_.pid_ != own_pid()) header_ = nullptr;
  }
  ~ChannelUse() {
    if (is_counted_) writer_.users_.fetch_sub(1, std::memory_order_seq_cst);
  }
  ChannelUse(const ChannelUse&) = delete;
  ChannelUse& operator=(const ChannelUse&) = delete;

  explicit operator bool() const { return header_ != nullptr; }
  HeapChannelHeader* operator->() const { return header_; }
  HeapChannelHeader& operator*() const { return *header_; }

 private:
  const ChannelWriter& writer_;
  HeapChannelHeader* header_ = nullptr;
  bool is_counted_ = false;
};

bool ChannelWriter::open_fd(int fd) {
  struct stat64 info;
  if (is_open() || fstat64(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  uint64_t bytes = static_cast<uint64_t>(info.st_size);
  if (bytes < kHeapChannelHeaderBytes + kMinRingBytes) return false;
  if (bytes > kHeapChannelHeaderBytes + kMaxRingBytes) return false;
  void* mapping = map_shared(fd, bytes);
  if (!mapping) return false;
  if (adopt(mapping, bytes)) return true;
  raw_syscall(SYS_munmap, reinterpret_cast<long>(mapping), static_cast<long>(bytes));
  return false;
}

bool ChannelWriter::adopt(void* mapping, uint64_t bytes) {
  auto* header = static_cast<HeapChannelHeader*>(mapping);
  uint64_t ring = header->ring_bytes;
  if (header->magic != kHeapChannelMagic) return false;
  if (header->version != kHeapChannelVersion) {
    header->problem = static_cast<uint32_t>(HeapProblem::version);
    return false;
  }
  if (ring < kMinRingBytes || (ring & (ring - 1)) != 0 || ring > bytes - kHeapChannelHeaderBytes)
    return false;
  uint32_t own = own_pid(), owner = 0;
  if (!__atomic_compare_exchange_n(&header->pid, &owner, own, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE) &&
      owner != own)
    return false;
  ring_bytes_ = ring;
  mapped_bytes_ = bytes;
  uint64_t children = header->child_channels;
  if (children > 0 && children <= kMostChildChannels &&
      bytes == kHeapChannelHeaderBytes + ring + children * kChildChannelBytes) {
    mapped_bytes_ = kHeapChannelHeaderBytes + ring;
    child_channels_ = static_cast<char*>(mapping) + mapped_bytes_;
    child_count_ = static_cast<uint32_t>(children);
  }
  pid_ = own;
  header_.store(header, std::memory_order_seq_cst);
  return true;
}

bool ChannelWriter::open_path(const char* path) {
  long fd = open_file(path, O_RDWR);
  if (is_error(fd)) return false;
  bool opened = open_fd(static_cast<int>(fd));
  raw_syscall(SYS_close, fd);
  return opened;
}

bool ChannelWriter::create(const char* path, uint64_t ring_bytes, uint64_t rate_bytes) {
  long fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
  if (is_error(fd)) return open_path(path);  // this process's own channel, from before an exec
  return fill(fd, {true, ring_bytes, rate_bytes, 0, 0});
}

bool ChannelWriter::claim_for_child(uint32_t parent_pid) {
  uint32_t own = own_pid();
  for (uint32_t i = 0; i < child_count_; ++i) {
    auto* header = reinterpret_cast<HeapChannelHeader*>(child_channels_ + i * kChildChannelBytes);
    uint32_t no_process = 0;
    if (header->magic != kHeapChannelMagic ||
        !__atomic_compare_exchange_n(&header->pid, &no_process, own, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    header->parent_pid.store(parent_pid, std::memory_order_relaxed);
    ring_bytes_ = kChildRingBytes;
    mapped_bytes_ = 0;
    pid_ = own;
    header_.store(header, std::memory_order_seq_cst);
    return true;
  }
  unmap_child_channels();
  return false;
}

void ChannelWriter::unmap_own(HeapChannelHeader* header) const {
  if (mapped_bytes_ == 0) return;
  raw_syscall(SYS_munmap, reinterpret_cast<long>(header), static_cast<long>(mapped_bytes_));
}

void ChannelWriter::unmap_child_channels() {
  if (child_count_ == 0) return;
  raw_syscall(SYS_munmap, reinterpret_cast<long>(child_channels_),
              static_cast<long>(child_count_ * kChildChannelBytes));
  child_count_ = 0;
  child_channels_ = nullptr;
}

bool ChannelWriter::create_unnamed(const ChannelSettings& settings) {
  long fd = raw_syscall(SYS_memfd_create, reinterpret_cast<long>("assay-heap-channel"),
                        MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return !is_error(fd) && fill(fd, settings);
}

// Turns an empty file into a channel of this process; closes the descriptor in any case. Where there is
// no room for a small ring the file stays empty, and Assay reports that.
bool ChannelWriter::fill(long fd, const ChannelSettings& settings) {
  uint64_t ring = kMinRingBytes;
  while (ring < settings.ring_bytes && ring < kMaxRingBytes) ring *= 2;
  while (!reserve_file(fd, kHeapChannelHeaderBytes + ring) && ring > 0)
    ring = ring > kMinRingBytes ? ring / 2 : 0;
  uint64_t bytes = kHeapChannelHeaderBytes + ring;
  // Seals are for memory files: Assay reads only memory that cannot be taken away. Files have no
  // seals.
  raw_syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  HeapChannelHeader* header =
      ring > 0 ? static_cast<HeapChannelHeader*>(map_shared(static_cast<int>(fd), bytes)) : nullptr;
  raw_syscall(SYS_close, fd);
  if (!header) return false;
  header->version = kHeapChannelVersion;
  header->ring_bytes = ring;
  header->rate_bytes = settings.rate_bytes;
  header->flags = settings.flags;
  header->max_samples_per_core = settings.max_samples_per_core;
  header->mode = static_cast<uint32_t>(settings.is_sampling ? HeapMode::sampling : HeapMode::off);
  // Last: a reader that sees the magic may use the rest.
  __atomic_store_n(&header->magic, kHeapChannelMagic, __ATOMIC_RELEASE);
  return adopt(header, bytes);
}

bool ChannelWriter::is_foreign() const {
  return is_open() && pid_ != own_pid();
}

ChannelSettings ChannelWriter::settings() const {
  HeapChannelHeader* header = header_.load(std::memory_order_seq_cst);
  if (!header) return {};
  return {header->mode.load(std::memory_order_relaxed) == static_cast<uint32_t>(HeapMode::sampling),
          ring_bytes_, header->rate_bytes.load(std::memory_order_relaxed),
          header->flags.load(std::memory_order_relaxed),
          header->max_samples_per_core.load(std::memory_order_relaxed)};
}

void ChannelWriter::forget(bool unmap) {
  HeapChannelHeader* header = header_.exchange(nullptr, std::memory_order_seq_cst);
  if (!header || !unmap) return;
  users_.store(0, std::memory_order_seq_cst);  // writers that were inside exist only in the parent
  unmap_own(header);
}

void ChannelWriter::close() {
  HeapChannelHeader* header = header_.exchange(nullptr, std::memory_order_seq_cst);
  if (!header) return;
  for (int look = 0; users_.load(std::memory_order_seq_cst) != 0; ++look) {
    if (look == kCloseLooks) return;  // a writer is still inside: the mapping stays
    // Not nanosleep: it would replace the system call that the kernel is to restart on an attached
    // thread. Set again each time, because the kernel writes the remaining time into it.
    timespec pause{0, kCloseLookNs};
    raw_syscall(SYS_ppoll, 0, 0, reinterpret_cast<long>(&pause));
  }
  unmap_own(header);
  unmap_child_channels();
}

uint64_t ChannelWriter::wanted_rate() const {
  ChannelUse header(*this);
  if (!header ||
      header->mode.load(std::memory_order_relaxed) != static_cast<uint32_t>(HeapMode::sampling))
    return 0;
  // No reader, or a reader that is too slow: sampling pauses, since its records would be lost.
  uint64_t used =
      header->head.load(std::memory_order_relaxed) - header->tail.load(std::memory_order_relaxed);
  if (used + kRoomForOne > ring_bytes_) return 0;
  return header->rate_bytes.load(std::memory_order_relaxed);
}

uint32_t ChannelWriter::max_samples_per_core() const {
  ChannelUse header(*this);
  return header ? header->max_samples_per_core.load(std::memory_order_relaxed) : 0;
}

bool ChannelWriter::wants_mmap() const {
  ChannelUse header(*this);
  return header && (header->flags.load(std::memory_order_relaxed) & kHeapWithMmap);
}

// Room for a record that does not wrap; the rest of the ring before it is padded.
char* ChannelWriter::reserve(HeapChannelHeader& header, uint64_t bytes) {
  char* ring = reinterpret_cast<char*>(&header) + kHeapChannelHeaderBytes;
  uint64_t head = header.head.load(std::memory_order_relaxed), padding = 0;
  do {
    uint64_t at = head & (ring_bytes_ - 1);
    padding = at + bytes > ring_bytes_ ? ring_bytes_ - at : 0;
    uint64_t used = head - header.tail.load(std::memory_order_acquire);
    if (used + padding + bytes > ring_bytes_) {
      header.dropped_records.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
  } while (
      !header.head.compare_exchange_weak(head, head + padding + bytes, std::memory_order_relaxed));
  if (padding) {
    auto* record = reinterpret_cast<HeapRecordHeader*>(ring + (head & (ring_bytes_ - 1)));
    record->kind = HeapRecordKind::padding;
    record->frames = 0;
    record->size.store(static_cast<uint32_t>(padding), std::memory_order_release);
  }
  return ring + ((head + padding) & (ring_bytes_ - 1));
}

bool ChannelWriter::write_alloc(const AllocSample& sample) {
  ChannelUse header(*this);
  if (!header) return false;
  uint32_t frames = sample.frames < kMaxHeapFrames ? sample.frames : kMaxHeapFrames;
  uint32_t bytes = static_cast<uint32_t>(sizeof(HeapAllocRecord) + frames * 8);
  auto* record = reinterpret_cast<HeapAllocRecord*>(reserve(*header, bytes));
  if (!record) return false;
  record->header.kind = HeapRecordKind::alloc;
  record->header.frames = static_cast<uint16_t>(frames);
  record->time_ns = sample.time_ns;
  record->address = sample.address;
  record->size = sample.bytes;
  record->rate_bytes = sample.rate_bytes;
  record->tid = sample.tid;
  record->function = static_cast<uint16_t>(sample.function);
  record->complete = sample.is_complete && frames == sample.frames;
  std::memcpy(static_cast<void*>(record + 1), sample.pcs, frames * 8);
  record->header.size.store(bytes, std::memory_order_release);
  return true;
}

bool ChannelWriter::write_free(uint64_t time_ns, uint64_t address, uint32_t tid) {
  ChannelUse header(*this);
  if (!header) return false;
  auto* record = reinterpret_cast<HeapFreeRecord*>(reserve(*header, sizeof(HeapFreeRecord)));
  if (!record) return false;
  record->header.kind = HeapRecordKind::free;
  record->header.frames = 0;
  record->time_ns = time_ns;
  record->address = address;
  record->tid = tid;
  record->reserved = 0;
  record->header.size.store(sizeof(HeapFreeRecord), std::memory_order_release);
  return true;
}

void ChannelWriter::count_dropped_live() {
  ChannelUse header(*this);
  if (header) header->dropped_live.fetch_add(1, std::memory_order_relaxed);
}

void ChannelWriter::set_ready(uint64_t hooked_slots) {
  ChannelUse header(*this);
  if (!header) return;
  header->hooked_slots.store(hooked_slots, std::memory_order_relaxed);
  header->ready.store(1, std::memory_order_release);
}

void ChannelWriter::add_hooked(uint64_t slots) {
  ChannelUse header(*this);
  if (header) header->hooked_slots.fetch_add(slots, std::memory_order_relaxed);
}

void ChannelWriter::set_problem(HeapProblem problem) {
  ChannelUse header(*this);
  if (header) header->problem.store(static_cast<uint32_t>(problem), std::memory_order_release);
}

}  // namespace assay::inject
