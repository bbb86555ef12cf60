#include "load/generator.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/resource.h>

#include "load/worker.h"

namespace assay::load {
namespace {

// Ticks of all workers, merged: the n-th ticks of all workers are one interval.
class TickBoard {
 public:
  explicit TickBoard(size_t workers) : waiting_(workers), ended_(workers, false) {}

  void add(size_t worker, TimeNs end, Tally&& tally) {
    std::lock_guard lock(mutex_);
    waiting_[worker].push_back({0, end, false, std::move(tally)});
    changed_.notify_one();
  }
  void end(size_t worker) {
    std::lock_guard lock(mutex_);
    ended_[worker] = true;
    changed_.notify_one();
  }
  // The next interval; nullopt when all workers have ended.
  std::optional<Tick> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ready(); });
    std::optional<Tick> sum;
    for (auto& queue : waiting_) {
      if (queue.empty()) continue;
      Tick tick = std::move(queue.front());
      queue.pop_front();
      if (!sum) {
        sum = std::move(tick);
        continue;
      }
      int64_t busiest = std::max(sum->tally.busiest_cpu_ns, tick.tally.busiest_cpu_ns);
      int64_t waited = std::max(sum->tally.busiest_wait_ns, tick.tally.busiest_wait_ns);
      sum->end = std::max(sum->end, tick.end);
      sum->tally.add(tick.tally);
      sum->tally.busiest_cpu_ns = busiest;
      sum->tally.busiest_wait_ns = waited;
    }
    return sum;
  }

 private:
  bool ready() const {
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i].empty() && !ended_[i]) return false;
    }
    return true;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Tick>> waiting_;
  std::vector<bool> ended_;
};

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

SecondRow row_of(const Tick& tick) {
  const Histogram& latency = tick.tally.latency;
  SecondRow row;
  row.end = tick.end;
  row.seconds = static_cast<double>(tick.end - tick.begin) / 1e9;
  row.ok = tick.tally.ok;
  row.failed = tick.tally.failed;
  row.p50_ns = latency.quantile_ns(0.5);
  row.p90_ns = latency.quantile_ns(0.9);
  row.p99_ns = latency.quantile_ns(0.99);
  row.max_ns = latency.max_ns();
  row.cpu_ns = tick.tally.cpu_ns;
  return row;
}

WorkerPlan plan_for(const LoadOptions& options, uint32_t index, TimeNs begin) {
  WorkerPlan plan;
  plan.index = index;
  plan.workers = options.threads;
  plan.connections = options.connections / options.threads +
                     (index < options.connections % options.threads ? 1 : 0);
  plan.streams = options.streams;
  plan.requests_per_client = options.requests_per_client;
  plan.rate = options.rate;
  plan.begin = begin;
  if (options.duration_ns > 0) plan.end = begin + options.warmup_ns + options.duration_ns;
  plan.tick_ns = options.tick_ns;
  // The warm-up ends with a tick, so that counting begins at a tick.
  int64_t odd = options.warmup_ns % options.tick_ns;
  plan.first_tick = begin + (odd > 0 ? odd : options.tick_ns);
  plan.timeout_ns = options.timeout_ns;
  plan.seed = options.seed;
  return plan;
}

struct RunningWorker {
  std::unique_ptr<Worker> worker;
  std::thread thread;
};

std::vector<RunningWorker> start_workers(const LoadOptions& options, const Workload& workload,
                                         const Address& address, const TlsContext* tls,
                                         const std::atomic<bool>& stop, TickBoard& board,
                                         TimeNs begin) {
  std::vector<RunningWorker> all(options.threads);
  for (uint32_t i = 0; i < options.threads; ++i) {
    all[i].worker = std::make_unique<Worker>(
        plan_for(options, i, begin), workload, address, tls, stop,
        [&board, i](TimeNs end, Tally&& tally) { board.add(i, end, std::move(tally)); });
  }
  for (uint32_t i = 0; i < options.threads; ++i) {
    all[i].thread = std::thread([&board, &worker = *all[i].worker, i] {
      pthread_setname_np(pthread_self(), "assay-load");
      worker.run();
      board.end(i);
    });
  }
  return all;
}

}  // namespace

Result<LoadResult> generate(const LoadOptions& options, const std::atomic<bool>& stop,
                            const std::function<void(const Tick&)>& on_tick) {
  LoadResult result;
  auto workload = prepare_workload(options);
  if (!workload) return std::unexpected(workload.error());
  result.workload = std::move(*workload);
  auto address = find_server(result.workload.url, options.timeout_ns);
  if (!address) return std::unexpected(address.error());
  std::unique_ptr<TlsContext> tls;
  if (result.workload.url.tls) {
    auto made = TlsContext::create(options.tls, result.workload.url.host,
                                   result.workload.protocol != Protocol::http1);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  raise_descriptor_limit();
  result.address = address->text();
  result.connections = options.connections;
  result.streams = options.streams;
  result.threads = options.threads;
  result.rate = options.rate;

  TickBoard board(options.threads);
  TimeNs begin = monotonic_ns();
  TimeNs counted_from = begin + options.warmup_ns;
  auto workers = start_workers(options, result.workload, *address, tls.get(), stop, board, begin);
  result.begin = counted_from;
  TimeNs before = begin;
  while (auto tick = board.next()) {
    tick->begin = before;
    before = tick->end;
    tick->warmup = tick->begin < counted_from && options.warmup_ns > 0;
    if (tick->warmup) {
      result.begin = tick->end;
    } else {
      result.total.add(tick->tally);
      result.series.push_back(row_of(*tick));
    }
    on_tick(*tick);
  }
  result.end = std::max(before, result.begin);
  for (RunningWorker& each : workers) {
    each.thread.join();
    const Leftover& open = each.worker->leftover();
    result.unanswered += open.in_flight;
    result.unanswered_oldest_ns = std::max(result.unanswered_oldest_ns, open.oldest_ns);
    result.unsent += open.unsent;
  }
  return result;
}

}  // namespace assay::load
