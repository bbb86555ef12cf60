// Channel: the shared memory between the main process and one worker.
//
// A memfd without a name, mapped by both: when the last process ends, in any way, the memory is
// freed. Two rings of fixed slots: requests to the worker, responses back. A ring has one consumer
// and, at a time, one producer; each side sleeps on a futex in the ring when it has to wait, so
// that the other can wake it across processes. Failures: creating or mapping it ends the process
// with a sentence. A peer that writes wrong indexes cannot make a reader leave its slots: indexes
// are taken modulo the size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lab::media {

inline constexpr size_t kPromptBytes = 480;
inline constexpr size_t kTextBytes = 232;

struct Request {
  uint64_t id = 0;
  uint32_t max_tokens = 0;
  uint16_t prompt_bytes = 0;
  bool streamed = false;
  uint64_t prompt_hash = 0;
  char prompt[kPromptBytes] = {};
};

struct Response {
  uint64_t id = 0;
  uint32_t tokens = 0;  // in this piece
  uint16_t text_bytes = 0;
  bool last = false;
  char text[kTextBytes] = {};
};

// Sleeps while *word == expected, at most timeout_ms; across processes.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int timeout_ms);
void futex_wake(std::atomic<uint32_t>& word);

template <typename T, uint32_t kSlots>
class Ring {
 public:
  // Producer. False: full.
  [[gnu::noinline]] bool try_push(const T& value) {
    uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) >= kSlots) return false;
    slots_[tail % kSlots] = value;
    tail_.store(tail + 1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) != 0) futex_wake(tail_);
    return true;
  }
  // Consumer. False: empty.
  [[gnu::noinline]] bool try_pop(T& value) {
    uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    value = slots_[head % kSlots];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  // Consumer: sleeps until there is something, at most timeout_ms.
  void wait_for_item(int timeout_ms) {
    sleeping_.store(1, std::memory_order_seq_cst);
    uint32_t seen = tail_.load(std::memory_order_seq_cst);
    if (seen == head_.load(std::memory_order_relaxed)) futex_wait(tail_, seen, timeout_ms);
    sleeping_.store(0, std::memory_order_relaxed);
  }

 private:
  alignas(64) std::atomic<uint32_t> tail_ = 0;
  alignas(64) std::atomic<uint32_t> head_ = 0;
  alignas(64) std::atomic<uint32_t> sleeping_ = 0;
  T slots_[kSlots];
};

struct Channel {
  Ring<Request, 512> requests;
  Ring<Response, 2048> responses;
  std::atomic<uint32_t> ready = 0;  // the worker has loaded its model
};

int create_channel_memory();         // a memfd of the right size, closed on exec
Channel* construct_channel(int fd);  // main: maps it and builds an empty channel
Channel* attach_channel(int fd);     // worker: maps what main built; closes fd

}  // namespace lab::media
