// BlocksAhead: the blocks of a stream; the next ones are decoded while the caller uses the last
// one.
//
// In: a started BlockStream, which must outlive it and belongs to it. Out: next() gives the blocks
// in their order. Short streams start no thread. Threads: next() is called by one thread; the
// stream is read by another once there are more blocks than a few. Failures: the stream's, at their
// place in the order.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "run/blocks/block_stream.h"

namespace assay::run {

template <class Row>
class BlocksAhead {
 public:
  explicit BlocksAhead(BlockStream<Row>& stream) : stream_(stream) {}
  ~BlocksAhead() {
    {
      std::lock_guard held(mutex_);
      unwanted_ = true;
    }
    changed_.notify_all();
    if (reader_.joinable()) reader_.join();
  }
  BlocksAhead(const BlocksAhead&) = delete;
  BlocksAhead& operator=(const BlocksAhead&) = delete;

  // Valid until the next call; null at the end.
  Result<const std::vector<Row>*> next() {
    if (taken_ < kReadHere) return read_here();
    if (!reader_.joinable()) reader_ = std::thread([this] { read_ahead(); });
    std::unique_lock held(mutex_);
    if (current_.capacity() != 0) spares_.push_back(std::move(current_));
    changed_.wait(held, [this] { return !ready_.empty() || ended_; });
    if (ready_.empty()) return last_;
    current_ = std::move(ready_.front());
    ready_.pop_front();
    held.unlock();
    changed_.notify_all();
    return &current_;
  }

 private:
  static constexpr size_t kReadHere = 3;   // blocks that are not worth a thread
  static constexpr size_t kMostAhead = 3;  // of up to 131,072 rows each

  Result<const std::vector<Row>*> read_here() {
    ++taken_;
    auto more = stream_.next();
    if (!more) return std::unexpected(more.error());
    return *more ? &stream_.rows() : nullptr;
  }

  void read_ahead() {
    while (true) {
      auto more = stream_.next();
      std::unique_lock held(mutex_);
      if (!more || !*more) {
        if (!more) last_ = std::unexpected(more.error());
        ended_ = true;
        changed_.notify_all();
        return;
      }
      std::vector<Row> spare;
      if (!spares_.empty()) {
        spare = std::move(spares_.back());
        spares_.pop_back();
      }
      ready_.push_back(stream_.exchange_rows(std::move(spare)));
      changed_.notify_all();
      changed_.wait(held, [this] { return ready_.size() < kMostAhead || unwanted_; });
      if (unwanted_) return;
    }
  }

  BlockStream<Row>& stream_;
  std::vector<Row> current_;
  size_t taken_ = 0;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Row>> ready_;
  std::vector<std::vector<Row>> spares_;
  Result<const std::vector<Row>*> last_ = nullptr;  // what comes after the last block
  bool ended_ = false;
  bool unwanted_ = false;
};

}  // namespace assay::run
