// Worker: one thread of load: an event loop over its connections, and the pace of its requests.
//
// Closed loop: a client sends its next request when it has the last answer. Open loop: requests are
// due at fixed times, independent of the answers; a request that finds no free client waits, and
// its latency counts from the time it was due. At every tick the worker delivers a Tally of the
// time since the last. Threads: run() is the worker's thread; the caller must make the delivery
// thread-safe. Failures: none of its own; failed requests are in the tallies.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "load/connection.h"

namespace assay::load {

struct WorkerPlan {
  uint32_t index = 0;  // among `workers`
  uint32_t workers = 1;
  uint32_t connections = 1;
  uint32_t streams = 1;
  uint64_t requests_per_client = 0;  // 0: until the end
  double rate = 0;                   // of all workers together; 0: closed loop
  TimeNs begin = 0;
  TimeNs end = INT64_MAX;
  TimeNs first_tick = 0;
  int64_t tick_ns = kNsPerSecond;
  int64_t timeout_ns = 0;
  uint64_t seed = 0;
};

// Requests that were open when a worker ended.
struct Leftover {
  uint64_t in_flight = 0;  // sent and not answered
  int64_t oldest_ns = 0;   // how long the oldest of them had waited
  uint64_t unsent = 0;     // open loop: due and not sent
};

class Worker final : private Dispatcher {
 public:
  using HandOver = std::function<void(TimeNs, Tally&&)>;
  Worker(const WorkerPlan& plan, const Workload& workload, const Address& address,
         const TlsContext* tls, const std::atomic<bool>& stop, HandOver hand_over);
  ~Worker() override;

  void run();
  const Leftover& leftover() const { return leftover_; }
  TimeNs ended_at() const { return ended_at_; }

 private:
  std::optional<Ticket> next(uint32_t connection, TimeNs now) override;
  void finished(const Ticket& ticket, const Outcome& outcome, TimeNs now) override;
  void has_room(Connection& connection) override;
  void wants_open(Connection& connection) override;

  bool open_loop() const { return plan_.rate > 0; }
  TimeNs due_time(uint64_t number) const;
  void send_due(TimeNs now);
  void reopen(TimeNs now);
  void sweep(TimeNs now);
  void tick(TimeNs now);
  int64_t wait_ns(TimeNs now) const;
  void handle_events(int64_t timeout_ns);
  void drain();
  bool done(TimeNs now) const;
  void finish(TimeNs now);

  WorkerPlan plan_;
  const std::atomic<bool>& stop_;
  HandOver hand_over_;
  UniqueFd epoll_;
  std::vector<char> buffer_;
  RequestRenderer renderer_;
  Tally tally_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint64_t> left_;  // requests a connection may still take
  std::deque<Connection*> with_room_;
  std::vector<Connection*> to_open_;
  uint64_t taken_ = 0;   // requests handed out so far
  uint64_t budget_ = 0;  // and how many there are to be in all
  uint64_t in_flight_ = 0;
  bool draining_ = false;
  bool kept_up_ = true;  // at the last check every due request had been sent and a client was free
  TimeNs next_tick_ = 0, last_tick_ = 0;
  TimeNs next_sweep_ = 0;
  int64_t sweep_ns_ = 0;
  int64_t cpu_before_ = 0, wait_before_ = 0;
  Leftover leftover_;
  TimeNs ended_at_ = 0;
};

}  // namespace assay::load
