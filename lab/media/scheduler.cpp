#include "lab/media/scheduler.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "lab/common/process.h"

namespace lab::media {

namespace {
constexpr int kWaitMs = 200;  // how soon a dispatcher notices that it shall stop
}

DecodeScheduler::DecodeScheduler(const Options& options, std::vector<Channel*> channels)
    : prompt_work_(options.number("prompt-work")),
      pause_us_(options.number("pause-us")),
      lock_percent_(options.fault("lock")) {
  for (Channel* channel : channels) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->channel = channel;
  }
}

DecodeScheduler::~DecodeScheduler() {
  stop();
}

void DecodeScheduler::stop() {
  stopping_ = true;
  for (auto& worker : workers_) {
    if (worker->dispatcher.joinable()) worker->dispatcher.join();
  }
}

void DecodeScheduler::start(Deliver deliver) {
  deliver_ = std::move(deliver);
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->dispatcher = std::thread([this, i] { pass_responses_on(i); });
  }
}

void DecodeScheduler::worker_died(size_t number) {
  workers_[number]->alive = false;
}

bool DecodeScheduler::all_ready() const {
  return std::ranges::all_of(workers_,
                             [](const auto& w) { return w->alive && w->channel->ready == 1; });
}

void DecodeScheduler::pass_responses_on(size_t number) {
  name_thread("dispatch-" + std::to_string(number));
  auto& responses = workers_[number]->channel->responses;
  Response piece;
  while (!stopping_) {
    if (responses.try_pop(piece)) {
      deliver_(piece);
    } else {
      responses.wait_for_item(kWaitMs);
    }
  }
}

// The useful work of admission: a pass over the prompt, again and again, `steps` bytes in all.
[[gnu::noinline]] uint64_t DecodeScheduler::tokenize_prompt(std::string_view prompt, uint64_t seed,
                                                            long steps) {
  uint64_t hash = seed;
  size_t at = 0;
  for (long i = 0; i < steps; ++i) {
    hash = (hash ^ static_cast<unsigned char>(prompt[at])) * 0x100000001b3ull;
    if (++at == prompt.size()) at = 0;
  }
  return hash;
}

[[gnu::noinline]] void DecodeScheduler::wait_for_admission(long pause_us) {
  timespec pause{pause_us / 1'000'000, pause_us % 1'000'000 * 1000};
  nanosleep(&pause, nullptr);
}

[[gnu::noinline]] bool DecodeScheduler::handle_api_request(Request& request,
                                                           std::string_view prompt) {
  if (prompt.empty()) prompt = " ";
  long inside = prompt_work_ * lock_percent_ / 100;
  long pause_inside = pause_us_ * lock_percent_ / 100;
  uint64_t hash = tokenize_prompt(prompt, 0xcbf29ce484222325ull, prompt_work_ - inside);
  if (pause_us_ > pause_inside) wait_for_admission(pause_us_ - pause_inside);
  if (lock_percent_ > 0) {
    std::lock_guard lock(scheduler_mutex_);
    if (pause_inside > 0) wait_for_admission(pause_inside);
    hash = tokenize_prompt(prompt, hash, inside);
  }
  request.prompt_hash = hash;
  request.prompt_bytes = static_cast<uint16_t>(std::min(prompt.size(), kPromptBytes));
  std::memcpy(request.prompt, prompt.data(), request.prompt_bytes);
  return push_to_a_worker(request);
}

bool DecodeScheduler::push_to_a_worker(const Request& request) {
  for (size_t tries = 0; tries < workers_.size(); ++tries) {
    Worker& worker = *workers_[next_.fetch_add(1, std::memory_order_relaxed) % workers_.size()];
    if (!worker.alive) continue;
    std::lock_guard lock(worker.producer);
    if (worker.channel->requests.try_push(request)) return true;
  }
  return false;
}

}  // namespace lab::media
