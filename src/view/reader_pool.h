// ReaderPool: readers of one run for questions that are answered at once.
//
// In: the first reader, which must outlive the pool; others are its twins, made when first needed.
// Out: borrow() lends one until the Lease ends, and waits while all are lent. Where no twin can be
// had (the file is gone, or the reader has none) questions take turns. Threads: any may borrow.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "run/reader.h"

namespace assay::view {

class ReaderPool {
 public:
  class Lease {
   public:
    Lease(ReaderPool& pool, const run::Reader& reader) : pool_(&pool), reader_(&reader) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), reader_(other.reader_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_) pool_->give_back(*reader_);
    }
    const run::Reader& reader() const { return *reader_; }

   private:
    ReaderPool* pool_;
    const run::Reader* reader_;
  };

  explicit ReaderPool(const run::Reader& first) : first_(first), idle_{&first} {}

  Lease borrow() {
    std::unique_lock held(mutex_);
    if (idle_.empty() && twins_.size() + 1 < most_) {
      auto twin = first_.twin();
      if (twin && *twin) {
        idle_.push_back(twin->get());
        twins_.push_back(std::move(*twin));
      } else {
        most_ = twins_.size() + 1;
      }
    }
    returned_.wait(held, [this] { return !idle_.empty(); });
    const run::Reader* reader = idle_.back();
    idle_.pop_back();
    return {*this, *reader};
  }

 private:
  // One for the report, which reads long; the rest for what the page asks meanwhile.
  static constexpr size_t kMostReaders = 4;

  void give_back(const run::Reader& reader) {
    {
      std::lock_guard held(mutex_);
      idle_.push_back(&reader);
    }
    returned_.notify_one();
  }

  const run::Reader& first_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<run::Reader>> twins_;
  std::vector<const run::Reader*> idle_;
  size_t most_ = kMostReaders;
};

}  // namespace assay::view
