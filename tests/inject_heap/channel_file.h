// A heap channel for tests: made as Assay makes one, read back whole once the target is done.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/preload/heap_channel.h"

namespace assay::inject {

struct AllocSeen {
  uint64_t time_ns, address, bytes, rate_bytes;
  uint32_t tid;
  HeapFunction function;
  bool is_complete;
  std::vector<uint64_t> pcs;

  double share() const {  // of being sampled
    return -std::expm1(-static_cast<double>(bytes) / static_cast<double>(rate_bytes));
  }
  double weight() const { return 1 / share(); }
};

struct HeapSeen {
  std::vector<AllocSeen> allocs;
  std::map<uint64_t, AllocSeen> live;  // by address
  size_t frees = 0, unknown_frees = 0, reused_addresses = 0, bad_records = 0;
};

class ChannelFile {
 public:
  static constexpr uint64_t kRingBytes = 64
                                         << 20;  // no reader runs meanwhile: all records must fit

  ChannelFile(const std::string& path, uint64_t rate_bytes, uint32_t samples_per_core = 1'000'000)
      : path_(path), fd_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (ftruncate(fd_, static_cast<off_t>(kBytes)) != 0) return;
    map();
    header().version = kHeapChannelVersion;
    header().ring_bytes = kRingBytes;
    header().mode = static_cast<uint32_t>(HeapMode::sampling);
    header().rate_bytes = rate_bytes;
    header().max_samples_per_core = samples_per_core;
    header().magic = kHeapChannelMagic;
  }
  // A channel that a target created itself.
  explicit ChannelFile(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0) return;
    bytes_ = static_cast<size_t>(lseek(fd_, 0, SEEK_END));
    map();
  }
  ~ChannelFile() {
    if (at_) munmap(at_, bytes_);
    if (fd_ >= 0) close(fd_);
    unlink(path_.c_str());
  }
  ChannelFile(const ChannelFile&) = delete;
  ChannelFile& operator=(const ChannelFile&) = delete;

  bool is_good() const { return at_ != nullptr && header().magic == kHeapChannelMagic; }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  HeapChannelHeader& header() const { return *static_cast<HeapChannelHeader*>(at_); }

  HeapSeen read() const {
    HeapSeen seen;
    const char* ring = static_cast<const char*>(at_) + kHeapChannelHeaderBytes;
    uint64_t end = header().head;
    for (uint64_t at = 0; at < end;) {
      const char* record = ring + at % header().ring_bytes;
      const auto& head = *reinterpret_cast<const HeapRecordHeader*>(record);
      uint32_t size = head.size;
      if (size < sizeof head || size % 8 != 0 || at + size > end) {
        ++seen.bad_records;
        break;
      }
      if (head.kind == HeapRecordKind::alloc) add_alloc(record, head.frames, seen);
      if (head.kind == HeapRecordKind::free) add_free(record, seen);
      at += size;
    }
    return seen;
  }

 private:
  static constexpr size_t kBytes = kHeapChannelHeaderBytes + kRingBytes;

  void map() {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at != MAP_FAILED) at_ = at;
  }
  static void add_alloc(const char* at, uint16_t frames, HeapSeen& seen) {
    const auto& record = *reinterpret_cast<const HeapAllocRecord*>(at);
    AllocSeen alloc{record.time_ns,       record.address,
                    record.size,          record.rate_bytes,
                    record.tid,           static_cast<HeapFunction>(record.function),
                    record.complete != 0, {}};
    alloc.pcs.resize(frames);
    std::memcpy(alloc.pcs.data(), at + sizeof record, frames * sizeof(uint64_t));
    seen.allocs.push_back(alloc);
    seen.reused_addresses += !seen.live.emplace(alloc.address, alloc).second;
  }
  static void add_free(const char* at, HeapSeen& seen) {
    ++seen.frees;
    const auto& record = *reinterpret_cast<const HeapFreeRecord*>(at);
    seen.unknown_frees += seen.live.erase(record.address) == 0;
  }

  std::string path_;
  int fd_;
  size_t bytes_ = kBytes;
  void* at_ = nullptr;
};

}  // namespace assay::inject
