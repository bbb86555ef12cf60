// RingReader: a thread that empties the kernel's rings in time and passes the records on in
// batches.
//
// In: rings of an EventSet. Out: Batches through a bounded queue, for one consumer. When the
// consumer falls behind, the reader first cuts stack copies, then drops samples; side-band records
// and reduced context switches are kept up to twice the queue's size, so time and names stay right;
// beyond that the rings fill, and the kernel counts what it loses. All of it is counted in the
// batch. Threads: start/stop by the owner; next() by the consumer. The reader thread runs at raised
// priority where that is allowed. Failures: a corrupt ring is emptied and counted as malformed;
// nothing here can fail the capture.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "capture/perf/batch.h"
#include "capture/perf/ring.h"

namespace assay::capture {

struct RingSource {
  int cpu = 0;
  int poll_fd = -1;  // readable when the ring passes its watermark; −1: polled by time only
  Ring* ring = nullptr;
  bool side_band = false;
};

// Another kernel source whose records are put into the same batches.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Appends what has been written up to now; called by the reader's thread.
  virtual void drain(Pressure pressure, Batch& batch) = 0;
};

class RingReader {
 public:
  struct Limits {
    size_t queue_bytes = 32u << 20;  // records waiting for the consumer
    int interval_ms = 25;            // longest time between two rounds
  };

  RingReader(std::vector<RingSource> sources, Limits limits,
             std::vector<BatchSource*> more_sources = {});
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  ~RingReader() { stop(); }

  void start();
  // Ends the thread after a last round; what was read stays in the queue.
  void stop();
  // The next batch; waits for one. nullopt once stopped and empty.
  std::optional<Batch> next();
  size_t queued_bytes() const;

  // One round over all rings, as the thread does it; public for tests.
  Batch read_round(Pressure pressure);

 private:
  void loop();
  void push(Batch batch);
  Pressure pressure() const;
  bool is_full() const;
  void copy_record(std::span<const std::byte> record, const RingSource& source, Pressure pressure,
                   Batch& batch);

  std::vector<RingSource> sources_;
  std::vector<BatchSource*> more_sources_;
  Limits limits_;
  double kept_share_ = 1;  // bytes of the last round after trimming, of those in the rings
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Batch> queue_;
  size_t queued_bytes_ = 0;
  bool stopping_ = false;
  bool ended_ = false;
};

}  // namespace assay::capture
