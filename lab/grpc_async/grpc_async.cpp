// grpc_async: an asynchronous gRPC server: CallData objects, completion queues, threads that drain
// them. See README.md for its faults.
#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lab.grpc.pb.h"
#include "lab/common/grpc_host.h"
#include "lab/common/keep.h"
#include "lab/common/options.h"
#include "lab/common/process.h"

namespace {

// Rows that every call reads. Looking one up costs `work` steps over the row and a pause, as of a
// slow store behind it; the fault `lock` does a share of both while holding the one mutex.
class SharedTable {
 public:
  SharedTable(long work, long pause_us, long lock_percent)
      : work_(work), pause_us_(pause_us), lock_percent_(lock_percent) {
    for (size_t i = 0; i < kRows; ++i)
      rows_.push_back("row " + std::to_string(i * 7919) + std::string(100, '.'));
  }

  uint64_t lookup(uint64_t key, std::string& value) {
    const std::string& row = rows_[key % kRows];
    long inside = work_ * lock_percent_ / 100;
    long pause_inside = pause_us_ * lock_percent_ / 100;
    uint64_t digest = digest_row(row, key, work_ - inside);
    if (pause_us_ > pause_inside) wait_for_store(pause_us_ - pause_inside);
    if (lock_percent_ > 0) digest = lookup_under_lock(row, digest, inside, pause_inside);
    value = row;
    return digest;
  }

 private:
  static constexpr size_t kRows = 1024;

  [[gnu::noinline]] uint64_t lookup_under_lock(const std::string& row, uint64_t seed, long steps,
                                               long pause_us) {
    std::lock_guard lock(table_mutex_);
    if (pause_us > 0) wait_for_store(pause_us);
    return digest_row(row, seed, steps);
  }
  [[gnu::noinline]] static uint64_t digest_row(const std::string& row, uint64_t digest,
                                               long steps) {
    size_t at = 0;
    for (long i = 0; i < steps; ++i) {
      digest = (digest ^ static_cast<unsigned char>(row[at])) * 0x100000001b3ull;
      if (++at == row.size()) at = 0;
    }
    return digest;
  }

  [[gnu::noinline]] static void wait_for_store(long pause_us) {
    timespec pause{pause_us / 1'000'000, pause_us % 1'000'000 * 1000};
    nanosleep(&pause, nullptr);
  }

  const long work_, pause_us_, lock_percent_;
  std::mutex table_mutex_;
  std::vector<std::string> rows_;
};

// The fault `churn`: as many small blocks as it says, all alive together, then all freed.
[[gnu::noinline]] void churn_heap(long blocks) {
  std::vector<std::unique_ptr<char[]>> held;
  for (long i = 0; i < blocks; ++i) {
    held.push_back(std::make_unique_for_overwrite<char[]>(static_cast<size_t>(24 + i * 37 % 1900)));
    held.back()[0] = 1;
  }
  lab::keep(held);
}

struct Shared {
  lab::Table::AsyncService service;
  SharedTable table;
  const long churn, tiny;
  std::atomic<bool> stopping = false;
  std::atomic<uint64_t> served = 0;

  explicit Shared(const lab::Options& options)
      : table(options.number("work"), options.number("pause-us"), options.fault("lock")),
        churn(options.fault("churn")),
        tiny(options.fault("tiny")) {}
};

// One call, from waiting for it to its end. proceed() is called by the thread that drains its
// queue; the object deletes itself when its last event has come.
class CallData {
 public:
  CallData(Shared& shared, grpc::ServerCompletionQueue& queue) : shared_(shared), queue_(queue) {}
  virtual ~CallData() = default;
  virtual void proceed(bool ok) = 0;

 protected:
  Shared& shared_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
};

class LookupCall final : public CallData {
 public:
  LookupCall(Shared& shared, grpc::ServerCompletionQueue& queue)
      : CallData(shared, queue), responder_(&context_) {
    shared.service.RequestLookup(&context_, &request_, &responder_, &queue, &queue, this);
  }
  [[gnu::noinline]] void proceed(bool ok) override {
    if (!ok || answered_) {
      delete this;
      return;
    }
    if (!shared_.stopping) new LookupCall(shared_, queue_);
    if (shared_.churn > 0) churn_heap(shared_.churn);
    std::string value;
    reply_.set_digest(shared_.table.lookup(request_.key(), value));
    reply_.set_value(value);
    reply_.set_key(request_.key());
    answered_ = true;
    ++shared_.served;
    responder_.Finish(reply_, grpc::Status::OK, this);
  }

 private:
  bool answered_ = false;
  lab::LookupRequest request_;
  lab::LookupReply reply_;
  grpc::ServerAsyncResponseWriter<lab::LookupReply> responder_;
};

// Streams its answer in one message, or, with the fault `tiny`, in that many, each written out by
// itself.
class ScanCall final : public CallData {
 public:
  ScanCall(Shared& shared, grpc::ServerCompletionQueue& queue)
      : CallData(shared, queue), writer_(&context_) {
    shared.service.RequestScan(&context_, &request_, &writer_, &queue, &queue, this);
  }
  [[gnu::noinline]] void proceed(bool ok) override {
    if (!ok || finished_) {
      delete this;
      return;
    }
    if (!begun_) {
      begun_ = true;
      if (!shared_.stopping) new ScanCall(shared_, queue_);
      bytes_ = std::min<size_t>(request_.bytes(), kMostBytes);
      messages_ = std::max<size_t>(1, static_cast<size_t>(shared_.tiny));
    }
    if (written_ < messages_) {
      write_one_message();
      return;
    }
    finished_ = true;
    ++shared_.served;
    writer_.Finish(grpc::Status::OK, this);
  }

 private:
  static constexpr size_t kMostBytes = 1 << 20;

  [[gnu::noinline]] void write_one_message() {
    ++written_;
    reply_.mutable_rows()->assign(std::max<size_t>(1, bytes_ / messages_), 'r');
    writer_.Write(reply_, this);
  }

  bool begun_ = false, finished_ = false;
  size_t bytes_ = 0, messages_ = 1, written_ = 0;
  lab::ScanRequest request_;
  lab::ScanReply reply_;
  grpc::ServerAsyncWriter<lab::ScanReply> writer_;
};

// One thread: takes events until its queue is shut down and empty.
void handle_rpcs(grpc::ServerCompletionQueue& queue, size_t number) {
  lab::name_thread("cq-" + std::to_string(number));
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<CallData*>(tag)->proceed(ok);
}

lab::Options declare_options() {
  lab::Options options("grpc_async", "an asynchronous gRPC server with completion queues");
  options.number("queues", 2, 1, 64, "completion queues");
  options.number("threads", 2, 1, 256, "threads that drain them");
  options.number("work", 2000, 0, 100'000'000, "steps of honest work per lookup");
  options.number("pause-us", 0, 0, 10'000'000, "microseconds that a lookup waits for its store");
  options.fault("churn", 1'000'000, "heap blocks allocated and freed per lookup");
  options.fault("lock", 100, "percent of a lookup's work and pause under the table's mutex");
  options.fault("tiny", 100'000, "messages that a scan's answer is cut into");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  lab::Options options = declare_options();
  options.parse(argc, argv);
  auto queue_count = static_cast<size_t>(options.number("queues"));
  auto thread_count = static_cast<size_t>(options.number("threads"));
  if (thread_count < queue_count) {
    std::fprintf(stderr,
                 "grpc_async: every queue needs a thread: --threads must be at least --queues\n");
    return 2;
  }
  sigset_t signals = lab::block_signals();

  Shared shared(options);
  grpc::ServerBuilder builder;
  builder.RegisterService(&shared.service);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (size_t i = 0; i < queue_count; ++i) queues.push_back(builder.AddCompletionQueue());
  auto server = lab::build(builder, static_cast<int>(options.number("port")));
  std::vector<std::thread> threads;
  for (auto& queue : queues) {
    new LookupCall(shared, *queue);
    new ScanCall(shared, *queue);
  }
  for (size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&queue = *queues[i % queue_count], i] { handle_rpcs(queue, i); });
  }

  lab::wait_for_end(signals);
  shared.stopping = true;
  lab::shut_down(*server);
  for (auto& queue : queues) queue->Shutdown();
  for (std::thread& thread : threads) thread.join();
  std::printf("served %lu requests\n", static_cast<unsigned long>(shared.served));
  return 0;
}
