#include "capture/heap/heap_channel.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/preload/heap_channel.h"

namespace assay::capture {
namespace {

using inject::HeapAllocRecord;
using inject::HeapChannelHeader;
using inject::HeapFreeRecord;
using inject::HeapRecordHeader;
using inject::HeapRecordKind;

constexpr uint64_t kLargestRecord = sizeof(HeapAllocRecord) + 8 * inject::kMaxHeapFrames;
constexpr uint64_t kSmallestRing = uint64_t{64} << 10, kLargestRing = uint64_t{256} << 20;
constexpr size_t kMostAtOnce = 200'000;
// What no record can truly tell: more than the address space, or a thread that no kernel numbers
// so.
constexpr uint64_t kMostBytes = uint64_t{1} << 47, kMostRate = uint64_t{1} << 40;
constexpr uint32_t kMostTid = 1 << 22;
constexpr TimeNs kAheadNs = kNsPerSecond;  // a record may be this much newer than our clock

std::atomic_ref<uint32_t> atomic_u32(std::byte* at) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at));
}

template <class T>
T word_at(std::span<const uint64_t> copy, size_t byte) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(copy.data()) + byte, sizeof value);
  return value;
}

void fill_header(HeapChannelHeader& header, uint64_t ring_bytes, uint64_t rate_bytes,
                 inject::HeapMode mode) {
  header.version = inject::kHeapChannelVersion;
  header.ring_bytes = ring_bytes;
  header.rate_bytes.store(std::max<uint64_t>(rate_bytes, 1));
  header.mode.store(static_cast<uint32_t>(mode));
  // Last: a child of the target may look at it meanwhile.
  std::atomic_ref(header.magic).store(inject::kHeapChannelMagic, std::memory_order_release);
}

}  // namespace

HeapRing::HeapRing(std::span<std::byte> memory, uint64_t ring_bytes)
    : header_(reinterpret_cast<HeapChannelHeader*>(memory.data())),
      ring_(memory.data() + inject::kHeapChannelHeaderBytes),
      ring_bytes_(ring_bytes),
      copy_(kLargestRecord / 8) {}

uint64_t HeapRing::pending_bytes() const {
  return header_->head.load(std::memory_order_acquire) - tail_;
}

size_t HeapRing::drain(size_t most, const std::function<void(const HeapRecord&)>& visit) {
  uint64_t head = header_->head.load(std::memory_order_acquire);
  if (head - tail_ > ring_bytes_ || head % 8 != 0) {
    // The target overwrote the header: continue at the position that it says now.
    ++damaged_;
    skip_to(head & ~uint64_t{7});
    return 0;
  }
  now_ = monotonic_ns();
  size_t count = 0;
  while (count < most && tail_ != head) {
    Step step = next(head, visit);
    if (step == Step::nothing) break;
    if (step == Step::record) ++count;
  }
  header_->tail.store(tail_, std::memory_order_release);
  return count;
}

void HeapRing::skip_to(uint64_t position) {
  std::memset(ring_, 0, ring_bytes_);
  tail_ = position;
  header_->tail.store(tail_, std::memory_order_release);
}

HeapRing::Step HeapRing::next(uint64_t head, const std::function<void(const HeapRecord&)>& visit) {
  uint64_t offset = tail_ & (ring_bytes_ - 1);
  std::byte* at = ring_ + offset;
  uint32_t size = atomic_u32(at).load(std::memory_order_acquire);
  if (size == 0) return Step::nothing;  // reserved and not yet filled in
  uint64_t room = std::min(ring_bytes_ - offset, head - tail_);
  if (size % 8 != 0 || size < sizeof(HeapRecordHeader) || size > room) {
    ++damaged_;
    skip_to(head);
    return Step::skipped;
  }
  bool handed = size <= kLargestRecord;
  if (handed) {
    std::memcpy(copy_.data(), at, size);
    handed = hand_over(size, visit);
  }
  std::memset(at, 0, size);
  tail_ += size;
  return handed ? Step::record : Step::skipped;
}

bool HeapRing::is_sound(const HeapRecord& record) const {
  return record.time >= 0 && record.time <= now_ + kAheadNs && record.tid > 0 &&
         record.tid <= kMostTid && record.size_bytes <= kMostBytes &&
         record.rate_bytes <= kMostRate;
}

// A number that is no time becomes one that is_sound() refuses.
TimeNs HeapRing::time_at(size_t offset) const {
  TimeNs time = 0;
  return __builtin_sub_overflow(word_at<TimeNs>(copy_, offset), ahead_ns_, &time) ? -1 : time;
}

// Everything below looks at the copy alone: the target may be writing to the original.
bool HeapRing::hand_over(uint32_t size, const std::function<void(const HeapRecord&)>& visit) {
  std::span<const uint64_t> copy(copy_);
  auto kind = word_at<uint16_t>(copy, offsetof(HeapRecordHeader, kind));
  HeapRecord record;
  if (kind == static_cast<uint16_t>(HeapRecordKind::free) && size >= sizeof(HeapFreeRecord)) {
    record.is_free = true;
    record.time = time_at(offsetof(HeapFreeRecord, time_ns));
    record.address = word_at<uint64_t>(copy, offsetof(HeapFreeRecord, address));
    record.tid = word_at<uint32_t>(copy, offsetof(HeapFreeRecord, tid));
    if (!is_sound(record)) {
      ++damaged_;
      return false;
    }
    visit(record);
    return true;
  }
  if (kind != static_cast<uint16_t>(HeapRecordKind::alloc) || size < sizeof(HeapAllocRecord))
    return false;
  auto frames = word_at<uint16_t>(copy, offsetof(HeapRecordHeader, frames));
  auto function = word_at<uint16_t>(copy, offsetof(HeapAllocRecord, function));
  if (frames > (size - sizeof(HeapAllocRecord)) / 8 || function >= model::kHeapFunctionCount) {
    ++damaged_;
    return false;
  }
  record.time = time_at(offsetof(HeapAllocRecord, time_ns));
  record.address = word_at<uint64_t>(copy, offsetof(HeapAllocRecord, address));
  record.size_bytes = word_at<uint64_t>(copy, offsetof(HeapAllocRecord, size));
  record.rate_bytes = word_at<uint64_t>(copy, offsetof(HeapAllocRecord, rate_bytes));
  record.tid = word_at<uint32_t>(copy, offsetof(HeapAllocRecord, tid));
  record.function = static_cast<model::HeapFunction>(function);
  record.complete = word_at<uint16_t>(copy, offsetof(HeapAllocRecord, complete)) == 1;
  record.pcs = copy.subspan(sizeof(HeapAllocRecord) / 8, frames);
  if (!is_sound(record)) {
    ++damaged_;
    return false;
  }
  visit(record);
  return true;
}

Result<std::unique_ptr<HeapChannel>> HeapChannel::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return fail_errno("cannot open {}", path);
  return adopt(std::move(fd), path);
}

Result<std::unique_ptr<HeapChannel>> HeapChannel::adopt(UniqueFd fd, const std::string& name) {
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return fail_errno("cannot look at {}", name);
  auto size = static_cast<uint64_t>(file.st_size);
  if (!S_ISREG(file.st_mode) || size < inject::kHeapChannelHeaderBytes + kSmallestRing ||
      size > inject::kHeapChannelHeaderBytes + kLargestRing +
                 inject::kMostChildChannels * inject::kChildChannelBytes) {
    return fail("{} is no heap channel", name);
  }
  auto channel = map(std::move(fd), 0, size, name);
  if (channel) (*channel)->inode_ = file.st_ino;
  return channel;
}

Result<std::unique_ptr<HeapChannel>> HeapChannel::map(UniqueFd fd, uint64_t offset, uint64_t size,
                                                      const std::string& name) {
  auto pages = SharedPages::map(fd.get(), offset, size);
  if (!pages) return fail("{}: {}", name, pages.error().what);
  auto* header = reinterpret_cast<HeapChannelHeader*>(pages->bytes().data());
  uint64_t magic = std::atomic_ref(header->magic).load(std::memory_order_acquire);
  // Once: the target may change it while we look.
  uint64_t ring_bytes = std::atomic_ref(header->ring_bytes).load();
  if (magic != inject::kHeapChannelMagic ||
      std::atomic_ref(header->version).load() != inject::kHeapChannelVersion ||
      !std::has_single_bit(ring_bytes) || ring_bytes < kSmallestRing ||
      ring_bytes > size - inject::kHeapChannelHeaderBytes) {
    return fail("{} is no heap channel of this version", name);
  }
  return std::unique_ptr<HeapChannel>(
      new HeapChannel(std::move(fd), offset, std::move(*pages), ring_bytes));
}

Result<void> HeapChannel::prepare(int memory, uint64_t ring_bytes, uint64_t rate_bytes) {
  ring_bytes = std::bit_floor(std::clamp(ring_bytes, kSmallestRing, kLargestRing));
  uint64_t children_at = inject::kHeapChannelHeaderBytes + ring_bytes;
  uint64_t size = children_at + kChildChannels * inject::kChildChannelBytes;
  if (ftruncate(memory, static_cast<off_t>(size)) != 0)
    return fail_errno("cannot size the memory to share with the target");
  // The target must not be able to take pages away from under a reader.
  if (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("cannot seal the memory to share with the target");
  HeapChannelHeader header{};
  fill_header(header, ring_bytes, rate_bytes, inject::HeapMode::off);
  header.child_channels = kChildChannels;
  if (pwrite(memory, &header, sizeof header, 0) != sizeof header)
    return fail_errno("cannot write the memory to share with the target");
  return {};
}

Result<void> HeapChannel::reserve() const {
  int failed = 0;
  do {
    failed = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                         static_cast<off_t>(memory_.size()));
  } while (failed != 0 && errno == EINTR);
  if (failed == 0 || errno == EOPNOTSUPP) return {};
  return fail_errno("there is no memory for what is to be shared with the target");
}

void HeapChannel::open_for_children() {
  for (uint32_t i = 0; i < child_count(); ++i) {
    fill_header(child(i), inject::kChildRingBytes, header().rate_bytes.load(),
                inject::HeapMode::sampling);
  }
}

Result<std::unique_ptr<HeapChannel>> HeapChannel::create_in(UniqueFd memory, uint64_t ring_bytes,
                                                            uint64_t rate_bytes) {
  if (auto made = prepare(memory.get(), ring_bytes, rate_bytes); !made)
    return std::unexpected(made.error());
  auto channel = adopt(std::move(memory), "the memory to share with the target");
  if (!channel) return channel;
  if (auto taken = (*channel)->reserve(); !taken) return std::unexpected(taken.error());
  (*channel)->open_for_children();
  return channel;
}

HeapChannel::HeapChannel(UniqueFd fd, uint64_t offset, SharedPages pages, uint64_t ring_bytes)
    : fd_(std::move(fd)), offset_(offset), pages_(std::move(pages)), ring_(memory_, ring_bytes) {}

HeapChannel::~HeapChannel() {
  stop_sampling();
}

HeapChannelHeader& HeapChannel::header() const {
  return *reinterpret_cast<HeapChannelHeader*>(memory_.data());
}

void HeapChannel::start_sampling() {
  header().mode.store(static_cast<uint32_t>(inject::HeapMode::sampling), std::memory_order_release);
}

void HeapChannel::stop_sampling() {
  header().mode.store(static_cast<uint32_t>(inject::HeapMode::detached), std::memory_order_release);
}

bool HeapChannel::ready() const {
  return header().ready.load(std::memory_order_acquire) == 1;
}

HeapProblem HeapChannel::problem() const {
  switch (static_cast<inject::HeapProblem>(header().problem.load(std::memory_order_acquire))) {
    case inject::HeapProblem::none:
      return HeapProblem::none;
    case inject::HeapProblem::static_allocator:
      return HeapProblem::static_allocator;
    case inject::HeapProblem::no_memory:
      return HeapProblem::no_memory;
    case inject::HeapProblem::version:
      return HeapProblem::version;
  }
  return HeapProblem::other;
}

uint64_t HeapChannel::hooked_slots() const {
  return header().hooked_slots.load(std::memory_order_relaxed);
}

HeapChannelLosses HeapChannel::losses() const {
  return {header().dropped_records.load(std::memory_order_relaxed),
          header().dropped_live.load(std::memory_order_relaxed), ring_.damaged()};
}

// As many as fit into the memory, whatever the target has written over the header.
uint32_t HeapChannel::child_count() const {
  uint64_t behind = memory_.size() - inject::kHeapChannelHeaderBytes - ring_.bytes();
  auto told = std::atomic_ref(header().child_channels).load();
  return static_cast<uint32_t>(std::min<uint64_t>(told, behind / inject::kChildChannelBytes));
}

HeapChannelHeader& HeapChannel::child(uint32_t index) const {
  return *reinterpret_cast<HeapChannelHeader*>(memory_.data() + inject::kHeapChannelHeaderBytes +
                                               ring_.bytes() + index * inject::kChildChannelBytes);
}

std::vector<HeapChild> HeapChannel::children() const {
  std::vector<HeapChild> children;
  for (uint32_t i = 0; i < child_count(); ++i) {
    HeapChannelHeader& header = child(i);
    if (header.ready.load(std::memory_order_acquire) != 1) continue;
    auto pid = static_cast<pid_t>(std::atomic_ref(header.pid).load());
    children.push_back({i, pid, static_cast<pid_t>(header.parent_pid.load())});
  }
  return children;
}

Result<std::unique_ptr<HeapChannel>> HeapChannel::open_child(uint32_t index) const {
  if (index >= child_count()) return fail("there is no such channel for a child");
  UniqueFd file(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) return fail_errno("a child's channel cannot be opened");
  uint64_t offset =
      inject::kHeapChannelHeaderBytes + ring_.bytes() + index * inject::kChildChannelBytes;
  auto opened =
      map(std::move(file), offset_ + offset, inject::kChildChannelBytes, "a child's channel");
  if (opened) (*opened)->inode_ = inode_;
  return opened;
}

void HeapChannel::give_back(uint32_t index) {
  if (index >= child_count()) return;
  HeapChannelHeader& header = child(index);
  header.ready.store(0);
  for (std::atomic<uint64_t>* counter : {&header.head, &header.tail, &header.dropped_records,
                                         &header.dropped_live, &header.hooked_slots})
    counter->store(0);
  std::memset(reinterpret_cast<std::byte*>(&header) + inject::kHeapChannelHeaderBytes, 0,
              inject::kChildRingBytes);
  fill_header(header, inject::kChildRingBytes, this->header().rate_bytes.load(),
              inject::HeapMode::sampling);
  std::atomic_ref(header.pid).store(0, std::memory_order_release);
}

size_t HeapChannel::drain(const std::function<void(const HeapRecord&)>& visit) {
  struct stat file {};
  if (fstat(fd_.get(), &file) != 0 ||
      static_cast<uint64_t>(file.st_size) < offset_ + memory_.size())
    return 0;
  return ring_.drain(kMostAtOnce, visit);
}

}  // namespace assay::capture
