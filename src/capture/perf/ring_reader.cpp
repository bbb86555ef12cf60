#include "capture/perf/ring_reader.h"

#include <algorithm>
#include <cstring>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/perf/record.h"

namespace assay::capture {
namespace {

// Least time between two rounds, so that the reader does not spin on a busy ring.
constexpr int kShortestRoundMs = 2;

// Beyond this many times the queue's size nothing more is read.
constexpr size_t kMostQueues = 2;

// The payload, size word included, of an event that has none.
constexpr size_t kNoPayloadBytes = 8;

void raise_own_priority() {
  pthread_setname_np(pthread_self(), "assay-reader");
  // On a saturated machine an ordinary thread may wait longer for a CPU than a ring holds. The
  // rounds are short and spaced, so real time is safe here. Needs privilege; without it the reader
  // runs at ordinary priority.
  sched_param parameters{};
  parameters.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) != 0) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -15);
  }
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_word(std::vector<std::byte>& to, uint64_t word) {
  append(to, std::as_bytes(std::span(&word, 1)));
}

// Copies a stack sample with only the valid part of its stack copy (or none of it).
void append_trimmed(std::span<const std::byte> record, const StackCut& cut, bool keep_stack,
                    Batch& batch) {
  size_t at = batch.bytes.size();
  append(batch.bytes, record.first(cut.prefix_bytes));
  size_t keep = keep_stack ? cut.copy_bytes : 0;
  append_word(batch.bytes, keep);
  if (keep > 0) {
    append(batch.bytes, record.subspan(cut.prefix_bytes + 8, keep));
    append_word(batch.bytes, keep);
  }
  auto size = static_cast<uint16_t>(batch.bytes.size() - at);
  std::memcpy(batch.bytes.data() + at + offsetof(perf_event_header, size), &size, sizeof size);
}

// A context switch reduced to its threads and its time, so that thread time stays right.
void append_payload_only(std::span<const std::byte> record, const StackCut& cut, Batch& batch) {
  size_t at = batch.bytes.size();
  append(batch.bytes, record.first(cut.chain_at));
  append_word(batch.bytes, 0);  // no callchain
  append(batch.bytes, record.subspan(cut.raw_at, cut.raw_bytes));
  append_word(batch.bytes, PERF_SAMPLE_REGS_ABI_NONE);
  append_word(batch.bytes, 0);  // no stack
  auto size = static_cast<uint16_t>(batch.bytes.size() - at);
  std::memcpy(batch.bytes.data() + at + offsetof(perf_event_header, size), &size, sizeof size);
}

}  // namespace

RingReader::RingReader(std::vector<RingSource> sources, Limits limits,
                       std::vector<BatchSource*> more_sources)
    : sources_(std::move(sources)), more_sources_(std::move(more_sources)), limits_(limits) {}

void RingReader::start() {
  thread_ = std::thread([this] { loop(); });
}

void RingReader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mutex_);
  ended_ = true;  // also when it never started
  filled_.notify_all();
}

void RingReader::loop() {
  raise_own_priority();
  std::vector<pollfd> fds;
  for (const RingSource& source : sources_) {
    if (source.poll_fd >= 0) fds.push_back({source.poll_fd, POLLIN, 0});
  }
  bool last_round = false;
  while (!last_round) {
    {
      std::lock_guard lock(mutex_);
      last_round = stopping_;
    }
    if (last_round || !is_full()) push(read_round(pressure()));
    if (last_round) break;
    usleep(kShortestRoundMs * 1000);
    poll(fds.data(), fds.size(), std::max(0, limits_.interval_ms - kShortestRoundMs));
    // A per-task event's end leaves its fd in POLLHUP for good: stop polling it.
    for (pollfd& fd : fds) {
      if (fd.revents & POLLHUP) fd.fd = -1;
    }
  }
}

Pressure RingReader::pressure() const {
  std::lock_guard lock(mutex_);
  if (queued_bytes_ > limits_.queue_bytes) return Pressure::drop_samples;
  if (queued_bytes_ > limits_.queue_bytes / 2) return Pressure::cut_stacks;
  return Pressure::none;
}

// Even reduced records use memory when no consumer takes them: then they stay in the rings, and the
// kernel loses and counts what does not fit there.
bool RingReader::is_full() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_ > kMostQueues * limits_.queue_bytes;
}

void RingReader::push(Batch batch) {
  std::lock_guard lock(mutex_);
  queued_bytes_ += batch.bytes.size() + batch.entries.size() * sizeof(Batch::Entry);
  queue_.push_back(std::move(batch));
  filled_.notify_one();
}

size_t RingReader::queued_bytes() const {
  std::lock_guard lock(mutex_);
  return queued_bytes_;
}

std::optional<Batch> RingReader::next() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [this] { return !queue_.empty() || ended_; });
  if (queue_.empty()) return std::nullopt;
  Batch batch = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= batch.bytes.size() + batch.entries.size() * sizeof(Batch::Entry);
  return batch;
}

Batch RingReader::read_round(Pressure pressure) {
  Batch batch;
  batch.drained_at = monotonic_ns();
  // Reserve at once: growing step by step copies everything twice. The share that trimming kept in
  // the last round gives the size; all of `pending` could be ten times too much.
  size_t pending = 0;
  for (const RingSource& source : sources_) pending += source.ring->pending_bytes();
  batch.bytes.reserve(static_cast<size_t>(static_cast<double>(pending) * kept_share_));
  for (const RingSource& source : sources_) {
    bool sane = source.ring->drain(
        [&](std::span<const std::byte> record) { copy_record(record, source, pressure, batch); });
    if (!sane) ++batch.malformed;
  }
  for (BatchSource* source : more_sources_) source->drain(pressure, batch);
  if (pending > 0) {
    kept_share_ =
        std::min(1.0, 1.1 * static_cast<double>(batch.bytes.size()) / static_cast<double>(pending));
  }
  return batch;
}

void RingReader::copy_record(std::span<const std::byte> record, const RingSource& source,
                             Pressure pressure, Batch& batch) {
  perf_event_header header;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.type == PERF_RECORD_LOST || header.type == PERF_RECORD_LOST_SAMPLES) {
    size_t at = sizeof header + (header.type == PERF_RECORD_LOST ? 8 : 0);
    uint64_t count = 0;
    if (record.size() >= at + 8) std::memcpy(&count, record.data() + at, 8);
    batch.ring_losses.push_back({source.cpu, source.side_band, count});
    return;
  }
  if (header.type == PERF_RECORD_THROTTLE) {
    ++batch.throttled;
    return;
  }
  if (header.type == PERF_RECORD_UNTHROTTLE) return;
  auto time = record_time(record);
  if (!time) {
    ++batch.malformed;
    return;
  }
  auto offset = static_cast<uint32_t>(batch.bytes.size());
  if (header.type == PERF_RECORD_SAMPLE) {
    // Tracepoint samples are small and have no stack: find_stack's bounds would distinguish them
    // only by chance, so the size decides. Nothing with a callchain, registers and a copy is this
    // short.
    constexpr size_t kSmallestStackSample = 200;
    auto cut = record.size() >= kSmallestStackSample ? find_stack(record) : std::nullopt;
    bool is_switch = cut && cut->raw_bytes > kNoPayloadBytes;
    if (pressure == Pressure::drop_samples && cut && !is_switch) {
      ++batch.dropped_samples;
      return;
    }
    if (pressure == Pressure::drop_samples && cut) {
      ++batch.cut_stacks;
      append_payload_only(record, *cut, batch);
    } else if (cut) {
      bool keep = pressure == Pressure::none;
      if (!keep && cut->copy_bytes > 0) ++batch.cut_stacks;
      append_trimmed(record, *cut, keep, batch);
    } else {
      append(batch.bytes, record);
    }
  } else {
    append(batch.bytes, record);
  }
  batch.entries.push_back({*time, offset, static_cast<uint32_t>(batch.bytes.size() - offset)});
}

}  // namespace assay::capture
