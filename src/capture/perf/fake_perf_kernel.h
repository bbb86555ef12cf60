// FakePerfKernel: perf events without a kernel, for tests.
//
// Rings are plain memory that a test writes records into; every opened event is kept with its
// attributes; rules decide what is refused, as the kernel would. File descriptors are real (ends of
// pipes), so that closing them shows: an event is alive as long as its descriptor is open. Threads:
// a FakeRing has one writer and one reader, as a real one; the kernel has one user.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "os/events/perf_event.h"

namespace assay::capture::fake {

class FakeRing {
 public:
  explicit FakeRing(size_t data_bytes) : data_(data_bytes) {}

  // As the kernel writes: whole records or nothing. False: no room, counted in refused().
  bool write(std::span<const std::byte> record) {
    uint64_t tail = std::atomic_ref(page_.data_tail).load(std::memory_order_acquire);
    if (head_ + record.size() - tail > data_.size()) {
      ++refused_;
      return false;
    }
    size_t offset = head_ % data_.size();
    size_t first = std::min(record.size(), data_.size() - offset);
    std::memcpy(data_.data() + offset, record.data(), first);
    std::memcpy(data_.data(), record.data() + first, record.size() - first);
    publish_head(head_ + record.size());
    return true;
  }

  // Sets head without writing, to place the next record or to imitate a faulty kernel.
  void publish_head(uint64_t head) {
    head_ = head;
    std::atomic_ref(page_.data_head).store(head, std::memory_order_release);
  }
  // An empty ring whose next record begins at `position`.
  void start_at(uint64_t position) {
    page_.data_tail = position;
    publish_head(position);
  }
  uint64_t tail() { return std::atomic_ref(page_.data_tail).load(std::memory_order_acquire); }
  uint64_t head() const { return head_; }
  uint64_t refused() const { return refused_; }

  perf_event_mmap_page* control() { return &page_; }
  std::span<std::byte> data() { return data_; }

 private:
  perf_event_mmap_page page_{};
  std::vector<std::byte> data_;
  uint64_t head_ = 0;
  uint64_t refused_ = 0;
};

// Held by the reader; the ring ends with it, as a mapping does.
class FakeRingMemory final : public os::RingMemory {
 public:
  explicit FakeRingMemory(std::shared_ptr<FakeRing> ring) : ring_(std::move(ring)) {}
  perf_event_mmap_page* control() override { return ring_->control(); }
  std::span<const std::byte> data() override { return ring_->data(); }

 private:
  std::shared_ptr<FakeRing> ring_;
};

class FakePerfKernel final : public os::PerfKernel {
 public:
  struct Event {
    perf_event_attr attr{};
    pid_t pid = 0;
    int cpu = 0;
    int fd = -1;
    uint64_t id = 0;
    bool enabled = false;
    uint64_t lost = 0;
    UniqueFd other_end;             // of the pipe whose read end is the event
    std::weak_ptr<FakeRing> ring;   // its own
    const Event* output = nullptr;  // the event whose ring it writes into instead

    bool is_open() const {
      pollfd poll_fd{other_end.get(), POLLOUT, 0};
      return poll(&poll_fd, 1, 0) >= 0 && (poll_fd.revents & POLLERR) == 0;
    }
  };

  // The rules; by default everything except cycles is allowed.
  struct Rules {
    bool every_process = true;             // else EACCES for pid −1
    bool kernel_side = true;               // else EACCES unless exclude_kernel
    bool has_cycles = false;               // else ENOENT for hardware events
    size_t largest_ring_bytes = SIZE_MAX;  // EPERM for a ring above
    size_t locked_bytes =
        SIZE_MAX;  // EPERM when all rings together, control pages included, are above
    size_t most_events = SIZE_MAX;                                      // EMFILE above
    std::set<pid_t> dead;                                               // ESRCH
    std::function<int(const perf_event_attr&, pid_t, int cpu)> refuse;  // any errno; 0: allowed
  };
  Rules rules;

  Result<UniqueFd> open(const perf_event_attr& attr, pid_t pid, int cpu) override {
    if (int code = refusal(attr, pid, cpu)) return refuse("open", code);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("pipe");
    auto event = std::make_unique<Event>();
    event->attr = attr;
    event->pid = pid;
    event->cpu = cpu;
    event->fd = ends[0];
    event->id = 1000 + events_.size();
    event->enabled = !attr.disabled;
    event->other_end = UniqueFd(ends[1]);
    events_.push_back(std::move(event));
    return UniqueFd(ends[0]);
  }

  Result<std::unique_ptr<os::RingMemory>> map_ring(int fd, size_t data_bytes) override {
    Event* event = find(fd);
    if (event == nullptr) return refuse("map", EBADF);
    if (data_bytes == 0 || (data_bytes & (data_bytes - 1)) != 0) return refuse("map", EINVAL);
    if (event->attr.inherit && event->cpu == -1) return refuse("map", EINVAL);
    if (data_bytes > rules.largest_ring_bytes) return refuse("map", EPERM);
    if (locked_bytes() + data_bytes + kPage > rules.locked_bytes) return refuse("map", EPERM);
    auto ring = std::make_shared<FakeRing>(data_bytes);
    rings_.push_back(ring);
    event->ring = ring;
    return std::make_unique<FakeRingMemory>(ring);
  }

  Result<void> redirect_output(int fd, int into_fd) override {
    Event* from = find(fd);
    Event* into = find(into_fd);
    if (from == nullptr || into == nullptr) return refuse("redirect", EBADF);
    if (from->cpu != into->cpu || from == into || into->output != nullptr)
      return refuse("redirect", EINVAL);
    if (from->attr.clockid != into->attr.clockid) return refuse("redirect", EINVAL);
    from->output = into;
    return {};
  }

  Result<void> enable(int fd) override { return set_enabled(fd, true); }
  Result<void> disable(int fd) override { return set_enabled(fd, false); }
  Result<uint64_t> lost(int fd) override {
    Event* event = find(fd);
    if (event == nullptr || event->attr.read_format != PERF_FORMAT_LOST)
      return refuse("read", EINVAL);
    return event->lost;
  }

  Result<uint64_t> id(int fd) override {
    Event* event = find(fd);
    if (event == nullptr) return refuse("id", EBADF);
    return event->id;
  }

  // Every event ever opened, in order.
  const std::vector<std::unique_ptr<Event>>& events() const { return events_; }
  void lose(const Event& event, uint64_t records) { find(event.fd)->lost += records; }
  std::vector<const Event*> open_events() const {
    std::vector<const Event*> open;
    for (const auto& event : events_) {
      if (event->is_open()) open.push_back(event.get());
    }
    return open;
  }
  // Where the event's records go; null when they go nowhere.
  static std::shared_ptr<FakeRing> ring_of(const Event& event) {
    return (event.output != nullptr ? event.output : &event)->ring.lock();
  }
  // Rings that are mapped now.
  std::vector<std::shared_ptr<FakeRing>> rings() const {
    std::vector<std::shared_ptr<FakeRing>> mapped;
    for (const auto& ring : rings_) {
      if (auto held = ring.lock()) mapped.push_back(held);
    }
    return mapped;
  }
  size_t locked_bytes() const {
    size_t bytes = 0;
    for (const auto& ring : rings()) bytes += ring->data().size() + kPage;
    return bytes;
  }

 private:
  static constexpr size_t kPage = 4096;

  static std::unexpected<Error> refuse(const char* call, int code) {
    return std::unexpected(
        Error{std::string("fake ") + call + ": " + std::strerror(code), "", code});
  }

  int refusal(const perf_event_attr& attr, pid_t pid, int cpu) const {
    if (rules.refuse) {
      if (int code = rules.refuse(attr, pid, cpu)) return code;
    }
    if (rules.dead.contains(pid)) return ESRCH;
    if (!rules.every_process && pid == -1) return EACCES;
    if (!rules.kernel_side && !attr.exclude_kernel) return EACCES;
    if (!rules.has_cycles && attr.type == PERF_TYPE_HARDWARE) return ENOENT;
    if (open_events().size() >= rules.most_events) return EMFILE;
    return 0;
  }

  // Descriptor numbers are reused after closing: the newest event with this number is returned.
  Event* find(int fd) const {
    for (auto it = events_.rbegin(); it != events_.rend(); ++it) {
      if ((*it)->fd == fd) return (*it)->is_open() ? it->get() : nullptr;
    }
    return nullptr;
  }

  Result<void> set_enabled(int fd, bool enabled) {
    Event* event = find(fd);
    if (event == nullptr) return refuse("enable", EBADF);
    event->enabled = enabled;
    return {};
  }

  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::weak_ptr<FakeRing>> rings_;
};

}  // namespace assay::capture::fake
