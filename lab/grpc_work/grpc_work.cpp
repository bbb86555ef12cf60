// grpc_work: a greeter that does a known amount of arithmetic per call and counts its requests.
// See README.md for its faults.
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>

#include <assay/assay.hpp>

#include "lab.grpc.pb.h"
#include "lab/common/grpc_host.h"
#include "lab/common/keep.h"
#include "lab/common/options.h"
#include "lab/common/pprof.h"
#include "lab/common/process.h"

namespace {

// Sum of squares, as the greeter's "work". The empty asm makes every step happen: without it the
// compiler replaces the loop by a formula.
[[gnu::noinline]] uint64_t sum_of_squares(long iterations) {
  uint64_t sum = 0;
  for (long i = 0; i < iterations; ++i) {
    sum += static_cast<uint64_t>(i) * static_cast<uint64_t>(i);
    asm volatile("" : "+r"(sum));
  }
  return sum;
}

// Counts events, each thread in a cell of its own; the fault `counter` sends a share of them to one
// number behind one mutex, which all threads fight for.
class RequestCounter {
 public:
  explicit RequestCounter(long shared_percent) : shared_percent_(shared_percent) {}

  void count(long events) {
    long shared = events * shared_percent_ / 100;
    add_to_own(events - shared);
    if (shared > 0) add_to_shared(shared);
  }
  uint64_t total() const {
    uint64_t sum = shared_;
    for (const Cell& cell : own_) sum += cell.value;
    return sum;
  }

 private:
  struct alignas(128) Cell {
    std::atomic<uint64_t> value = 0;
  };
  [[gnu::noinline]] void add_to_own(long events) {
    static std::atomic<size_t> threads = 0;
    thread_local Cell& cell = own_[threads.fetch_add(1) % own_.size()];
    for (long i = 0; i < events; ++i) cell.value.fetch_add(1, std::memory_order_relaxed);
  }
  [[gnu::noinline]] void add_to_shared(long events) {
    for (long i = 0; i < events; ++i) {
      std::lock_guard lock(mutex_);
      ++shared_;
    }
  }

  const long shared_percent_;
  std::mutex mutex_;
  uint64_t shared_ = 0;  // guarded by mutex_
  std::array<Cell, 64> own_;
};

class Greeter final : public lab::Greeter::Service {
 public:
  explicit Greeter(const lab::Options& options)
      : iterations_(options.number("iterations") + options.fault("work")),
        events_(options.number("events")),
        copies_(options.fault("copies")),
        payload_(static_cast<size_t>(options.number("payload")), 'x'),
        counter_(options.fault("counter")) {}

  grpc::Status SayHello(grpc::ServerContext*, const lab::HelloRequest* request,
                        lab::HelloReply* reply) override {
    assay::label scope("method", "SayHello");
    reply->set_sum(sum_of_squares(iterations_));
    counter_.count(events_);
    for (long i = 0; i < copies_; ++i) copy_payload();
    reply->set_message("Hello " + request->name());
    requests_.fetch_add(1, std::memory_order_relaxed);
    return grpc::Status::OK;
  }
  uint64_t requests() const { return requests_; }

 private:
  [[gnu::noinline]] void copy_payload() {
    std::string copy = payload_;
    lab::keep(copy);
  }

  const long iterations_, events_, copies_;
  const std::string payload_;
  RequestCounter counter_;
  std::atomic<uint64_t> requests_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  lab::Options options("grpc_work", "a gRPC greeter with a known amount of work per call");
  options.number("iterations", 50'000, 0, 1'000'000'000, "steps of honest work per call");
  options.number("events", 1, 0, 10'000'000, "events counted per call");
  options.number("payload", 65'536, 1, 1 << 26, "bytes that the fault copies copies");
  options.number("pollers", 2, 1, 64, "threads that gRPC may poll with");
  options.fault("work", 1'000'000'000, "more steps of work per call");
  options.fault("counter", 100, "percent of the events counted in one number behind one mutex");
  options.fault("copies", 10'000, "needless copies of the payload per call");
  lab::declare_pprof(options);
  options.parse(argc, argv);
  sigset_t signals = lab::block_signals();
  lab::serve_pprof(options, 0);

  Greeter greeter(options);
  grpc::ServerBuilder builder;
  builder.RegisterService(&greeter);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS,
                              static_cast<int>(options.number("pollers")));
  auto server = lab::build(builder, static_cast<int>(options.number("port")));
  lab::wait_for_end(signals);
  lab::shut_down(*server);
  std::printf("served %lu requests\n", static_cast<unsigned long>(greeter.requests()));
  return 0;
}
