#include "lab/media/worker.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "lab/common/keep.h"
#include "lab/common/process.h"

namespace lab::media {
namespace {

constexpr size_t kMaxBatch = 16;
constexpr int kIdleWaitMs = 1000;
constexpr size_t kTokenBytes = 12;

// The sampling parameters of a request. Owns many strings, so building one allocates: harmless once
// per sequence, the fault `params` when it is done for every token.
struct SamplingParams {
  [[gnu::noinline]] SamplingParams(uint32_t max_tokens, long stop_words);
  uint32_t max_tokens;
  double temperature = 0.7, top_p = 0.95;
  std::vector<std::string> stop;
  std::vector<std::pair<std::string, double>> logit_bias;
};

SamplingParams::SamplingParams(uint32_t tokens, long stop_words) : max_tokens(tokens) {
  for (long i = 0; i < stop_words; ++i) {
    stop.push_back("<|end_of_turn_number_" + std::to_string(i) + "|>");
    logit_bias.emplace_back("token_with_a_long_name_" + std::to_string(i),
                            1.0 / static_cast<double>(i + 1));
  }
}

// Simulates the accelerator: a hidden state that every token changes.
class MockPipeline {
 public:
  explicit MockPipeline(long token_work) : token_work_(token_work) {}

  // The useful work of a token.
  [[gnu::noinline]] uint64_t decode_token(uint64_t state) {
    for (long i = 0; i < token_work_; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    return state;
  }

 private:
  long token_work_;
};

struct Sequence {
  Request request;
  uint64_t state = 1;
  uint32_t produced = 0;
  Response pending;
  SamplingParams params;
};

class BlazeRunner {
 public:
  BlazeRunner(const Options& options, int number, Channel& channel)
      : channel_(channel),
        pipeline_(options.number("token-work")),
        poll_(options.fault("poll")),
        clock_(options.fault("clock")),
        params_(options.fault("params")),
        device_us_(options.fault("device")),
        hang_after_(number == 0 ? options.fault("hang") : 0) {
    if (hang_after_ > 0 && pipe(device_) != 0) die("pipe");
  }

  void run() {
    for (;;) {
      take_requests();
      if (batch_.empty()) {
        wait_for_request();
      } else {
        step();
      }
    }
  }

 private:
  void take_requests() {
    Request request;
    while (batch_.size() < kMaxBatch && channel_.requests.try_pop(request)) admit(request);
  }

  void admit(const Request& request) {
    ++taken_;
    uint64_t state = request.prompt_hash | 1;
    batch_.push_back({request, state, 0, Response{}, SamplingParams(request.max_tokens, 2)});
    batch_.back().pending.id = request.id;
  }

  [[gnu::noinline]] void wait_for_request() {
    if (poll_ == 0) return channel_.requests.wait_for_item(kIdleWaitMs);
    // The fault: an idle worker polls the queue, more with a higher intensity; at 100 it never
    // sleeps.
    Request request;
    for (long i = 0; poll_ >= 100 || i < poll_ * 1000; ++i) {
      if (!channel_.requests.try_pop(request)) continue;
      admit(request);
      return;
    }
    channel_.requests.wait_for_item(kIdleWaitMs);
  }

  // One token for every sequence of the batch.
  [[gnu::noinline]] void step() {
    if (hang_after_ > 0 && taken_ >= static_cast<uint64_t>(hang_after_)) wait_for_device();
    if (device_us_ > 0) sleep_until_device_is_done();
    for (Sequence& sequence : batch_) {
      if (clock_ > 0) check_deadline();
      if (params_ > 0) {
        SamplingParams fresh(sequence.request.max_tokens, params_);
        keep(fresh);
      }
      sequence.state = pipeline_.decode_token(sequence.state);
      emit_token(sequence);
    }
    std::erase_if(batch_, [](const Sequence& s) { return s.produced >= s.request.max_tokens; });
  }

  // The fault `clock`: reads the time again and again where one reading would do.
  [[gnu::noinline]] void check_deadline() {
    timespec now{};
    for (long i = 0; i < clock_; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
    keep(now);
  }

  // The fault `hang`: a device that never answers.
  [[gnu::noinline]] void wait_for_device() {
    char byte;
    while (read(device_[0], &byte, 1) != 1) {
    }
  }

  // The fault `device`: a pause in every step, as of a device that is polled too rarely.
  [[gnu::noinline]] void sleep_until_device_is_done() {
    timespec pause{device_us_ / 1'000'000, device_us_ % 1'000'000 * 1000};
    nanosleep(&pause, nullptr);
  }

  void emit_token(Sequence& sequence) {
    Response& pending = sequence.pending;
    char* out = pending.text + pending.text_bytes;
    *out++ = ' ';
    for (uint64_t bits = sequence.state, i = 0; i < 5; ++i, bits >>= 5)
      *out++ = "abcdefghijklmnopqrstuvwxyzetaoin"[bits & 31];
    pending.text_bytes = static_cast<uint16_t>(out - pending.text);
    ++pending.tokens;
    ++sequence.produced;
    pending.last = sequence.produced >= sequence.request.max_tokens;
    bool full = pending.text_bytes + kTokenBytes > kTextBytes;
    if (!pending.last && !full && !sequence.request.streamed) return;
    while (!channel_.responses.try_push(pending))
      usleep(200);  // the main process is slower: wait for it
    pending.text_bytes = 0;
    pending.tokens = 0;
  }

  Channel& channel_;
  MockPipeline pipeline_;
  std::vector<Sequence> batch_;
  uint64_t taken_ = 0;
  long poll_, clock_, params_, device_us_, hang_after_;
  int device_[2] = {-1, -1};
};

}  // namespace

int run_worker(const Options& options, int number, Channel& channel) {
  name_thread("media-worker-" + std::to_string(number));
  BlazeRunner runner(options, number, channel);
  channel.ready = 1;
  runner.run();
  return 0;
}

}  // namespace lab::media
