// DecodeScheduler: main's side of the workers. Prepares a prompt, picks a worker, passes answers
// on.
//
// submit() may be called from any thread. One thread per worker takes its responses and passes each
// piece to `deliver`, which must be fast. A worker that has ended gets no more requests. Fault:
// with `lock` a share of the preparation (arithmetic, and a pause where one is asked for) is done
// while holding the one mutex of the scheduler. Failures: submit() returns false when no worker can
// take the request now.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "lab/common/options.h"
#include "lab/media/channel.h"

namespace lab::media {

class DecodeScheduler {
 public:
  using Deliver = std::function<void(const Response&)>;

  DecodeScheduler(const Options& options, std::vector<Channel*> channels);
  ~DecodeScheduler();
  DecodeScheduler(const DecodeScheduler&) = delete;
  DecodeScheduler& operator=(const DecodeScheduler&) = delete;

  void start(Deliver deliver);
  bool submit(Request& request, std::string_view prompt) {
    return handle_api_request(request, prompt);
  }
  void stop();  // no piece is delivered after it returns
  void worker_died(size_t number);
  bool all_ready() const;
  size_t worker_count() const { return workers_.size(); }

 private:
  struct Worker {
    Channel* channel;
    std::mutex producer;  // one producer at a time in the ring
    std::atomic<bool> alive = true;
    std::thread dispatcher;
  };

  bool handle_api_request(Request& request, std::string_view prompt);
  uint64_t tokenize_prompt(std::string_view prompt, uint64_t seed, long steps);
  void wait_for_admission(long pause_us);
  void pass_responses_on(size_t number);
  bool push_to_a_worker(const Request& request);

  const long prompt_work_, pause_us_, lock_percent_;
  std::mutex scheduler_mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopping_ = false;
  Deliver deliver_;
};

}  // namespace lab::media
