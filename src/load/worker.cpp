#include "load/worker.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>

#include "load/http1/http1_connection.h"
#include "load/http2/http2_connection.h"
#include "os/text_fields.h"

namespace assay::load {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr int kEvents = 256;
constexpr int64_t kDrainNs = 200 * kNsPerMs;
constexpr int64_t kShortestSweepNs = 5 * kNsPerMs;
constexpr int64_t kLongestSweepNs = 100 * kNsPerMs;

int64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

// Time in the run queue so far; 0 where the kernel does not provide it.
int64_t thread_wait_ns() {
  auto text = os::read_text_file("/proc/thread-self/schedstat");
  if (!text) return 0;
  auto words = os::split_words(*text);
  return words.size() > 1 ? os::parse_i64(words[1]).value_or(0) : 0;
}

}  // namespace

Worker::Worker(const WorkerPlan& plan, const Workload& workload, const Address& address,
               const TlsContext* tls, const std::atomic<bool>& stop, HandOver hand_over)
    : plan_(plan),
      stop_(stop),
      hand_over_(std::move(hand_over)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      buffer_(kBufferBytes),
      renderer_(workload, plan.seed + plan.index) {
  sweep_ns_ = std::clamp(plan_.timeout_ns / 20, kShortestSweepNs, kLongestSweepNs);
  Connection::Parts parts{epoll_.get(), address, tls,     workload,        renderer_,
                          *this,        tally_,  buffer_, plan_.timeout_ns};
  bool http1 = workload.protocol == Protocol::http1;
  uint64_t per_connection =
      plan_.requests_per_client == 0 ? UINT64_MAX : plan_.requests_per_client * plan_.streams;
  for (uint32_t i = 0; i < plan_.connections; ++i) {
    if (http1) {
      connections_.push_back(std::make_unique<Http1Connection>(parts, i));
    } else {
      connections_.push_back(std::make_unique<Http2Connection>(parts, i, plan_.streams));
    }
    left_.push_back(per_connection);
  }
  bool endless = plan_.requests_per_client == 0;
  budget_ = endless ? UINT64_MAX : per_connection * plan_.connections;
}

Worker::~Worker() = default;

void Worker::run() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // the default of 50 µs would blur the pace of an open loop
  cpu_before_ = thread_cpu_ns();
  wait_before_ = thread_wait_ns();
  next_tick_ = plan_.first_tick;
  TimeNs now = monotonic_ns();
  for (auto& connection : connections_) connection->open(now);
  while (!done(now)) {
    handle_events(wait_ns(now));
    now = monotonic_ns();
    if (open_loop()) send_due(now);
    if (!to_open_.empty()) reopen(now);
    if (now >= next_sweep_) sweep(now);
    if (now >= next_tick_) tick(now);
  }
  finish(now);
  drain();
}

void Worker::handle_events(int64_t timeout_ns) {
  std::array<epoll_event, kEvents> events;
  timespec timeout{timeout_ns / kNsPerSecond, timeout_ns % kNsPerSecond};
  int count = ::epoll_pwait2(epoll_.get(), events.data(), kEvents, &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    static_cast<Connection*>(event.data.ptr)->handle(event.events);
  }
}

// Answers that are on their way are still taken, uncounted: closing at once would reset the
// connections, which servers report as errors.
void Worker::drain() {
  draining_ = true;
  TimeNs until = monotonic_ns() + kDrainNs;
  for (TimeNs now = 0; in_flight_ > 0 && (now = monotonic_ns()) < until;) {
    handle_events(until - now);
  }
}

bool Worker::done(TimeNs now) const {
  return now >= plan_.end || stop_.load(std::memory_order_relaxed) ||
         (taken_ >= budget_ && in_flight_ == 0);
}

// Time until the next action that needs no event.
int64_t Worker::wait_ns(TimeNs now) const {
  TimeNs until = std::min({plan_.end, next_tick_, next_sweep_});
  if (open_loop() && !with_room_.empty() && taken_ < budget_) {
    until = std::min(until, due_time(taken_));
  }
  return std::clamp<int64_t>(until - now, 0, kNsPerSecond);
}

TimeNs Worker::due_time(uint64_t number) const {
  double of_all = static_cast<double>(number) * plan_.workers + plan_.index;
  return plan_.begin + std::llround(of_all * 1e9 / plan_.rate);
}

std::optional<Ticket> Worker::next(uint32_t connection, TimeNs now) {
  uint64_t& left = left_[connection];
  if (left == 0 || taken_ >= budget_ || now >= plan_.end || draining_) return std::nullopt;
  Ticket ticket;
  ticket.intended = now;
  if (open_loop()) {
    ticket.intended = due_time(taken_);
    if (ticket.intended > now) return std::nullopt;
    // In an open loop all connections share one budget: a free connection takes the next request.
  } else if (left != UINT64_MAX) {
    --left;
  }
  ticket.seq = taken_ * plan_.workers + plan_.index;
  ++taken_;
  ++in_flight_;
  return ticket;
}

void Worker::finished(const Ticket& ticket, const Outcome& outcome, TimeNs now) {
  --in_flight_;
  tally_.count(outcome, now - ticket.intended);
}

void Worker::has_room(Connection& connection) {
  if (!open_loop() || connection.listed) return;
  connection.listed = true;
  with_room_.push_back(&connection);
}

void Worker::wants_open(Connection& connection) {
  to_open_.push_back(&connection);
}

void Worker::reopen(TimeNs now) {
  std::vector<Connection*> list;
  list.swap(to_open_);
  for (Connection* connection : list) connection->open(now);
}

// Connections take turns, so that the load spreads like that of independent clients.
void Worker::send_due(TimeNs now) {
  while (!with_room_.empty() && taken_ < budget_ && due_time(taken_) <= now && now < plan_.end) {
    if (kept_up_) tally_.lag.record(now - due_time(taken_));
    Connection* connection = with_room_.front();
    with_room_.pop_front();
    connection->listed = false;
    if (connection->send_one(now)) has_room(*connection);
    now = monotonic_ns();
  }
  kept_up_ = !with_room_.empty();
}

void Worker::sweep(TimeNs now) {
  next_sweep_ = now + sweep_ns_;
  for (auto& connection : connections_) connection->expire(now);
}

void Worker::tick(TimeNs now) {
  while (next_tick_ <= now) next_tick_ += plan_.tick_ns;
  last_tick_ = now;
  int64_t cpu = thread_cpu_ns(), waited = thread_wait_ns();
  tally_.cpu_ns = tally_.busiest_cpu_ns = cpu - cpu_before_;
  tally_.cpu_wait_ns = tally_.busiest_wait_ns = waited - wait_before_;
  cpu_before_ = cpu;
  wait_before_ = waited;
  hand_over_(now, std::move(tally_));
  tally_ = Tally();
}

void Worker::finish(TimeNs now) {
  ended_at_ = now;
  for (const auto& connection : connections_) {
    leftover_.in_flight += connection->in_flight();
    TimeNs oldest = connection->oldest_intended();
    if (oldest != INT64_MAX) leftover_.oldest_ns = std::max(leftover_.oldest_ns, now - oldest);
  }
  if (open_loop()) {
    TimeNs until = std::min(now, plan_.end);
    while (taken_ + leftover_.unsent < budget_ && due_time(taken_ + leftover_.unsent) < until) {
      ++leftover_.unsent;
    }
  }
  if (now > last_tick_) tick(now);
}

}  // namespace assay::load
