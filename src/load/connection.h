// Connection: one connection of a worker and the clients that share it, for every protocol.
//
// A client sends one request after the other: an HTTP/1.1 connection has one client, an HTTP/2
// connection one per stream. The connection gets requests from its Dispatcher and reports how each
// ended. It connects, and connects again after a loss: at once when the last connection had an
// answer, otherwise after a growing pause. Driven by one worker's event loop; never blocks.
// Failures become Outcomes of the affected requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "load/byte_stream.h"
#include "load/result/outcome.h"
#include "load/result/tally.h"
#include "load/workload.h"

namespace assay::load {

class Connection;

// Permission to send one request.
struct Ticket {
  TimeNs intended = 0;  // latency counts from here: in an open loop, from when it was due
  uint64_t seq = 0;
};

// What a connection needs from its worker.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // The next request of a connection; nothing when none is due or the connection may send no more.
  virtual std::optional<Ticket> next(uint32_t connection, TimeNs now) = 0;
  virtual void finished(const Ticket& ticket, const Outcome& outcome, TimeNs now) = 0;
  // The connection has a client without a request.
  virtual void has_room(Connection& connection) = 0;
  // open() is to be called as soon as the current events are handled.
  virtual void wants_open(Connection& connection) = 0;
};

class Connection {
 public:
  struct Parts {
    int epoll = -1;
    const Address& address;
    const TlsContext* tls = nullptr;  // null: unencrypted
    const Workload& workload;
    RequestRenderer& renderer;
    Dispatcher& dispatcher;
    Tally& tally;
    std::span<char> buffer;  // for reading, shared by the worker's connections
    int64_t timeout_ns = 0;
  };
  Connection(const Parts& parts, uint32_t number) : parts_(parts), number_(number) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void open(TimeNs now);
  void handle(uint32_t events);
  // Sends one request if one is due; false when the connection has no room for more.
  virtual bool send_one(TimeNs now) = 0;
  // Ends requests that have timed out; opens the connection again when its pause is over.
  void expire(TimeNs now);
  virtual uint64_t in_flight() const = 0;
  virtual TimeNs oldest_intended() const = 0;  // INT64_MAX when nothing is in flight

  bool listed = false;  // the worker's own mark: it is among those with room

 protected:
  enum class State : uint8_t { closed, connecting, open };

  virtual void on_open(TimeNs now) = 0;
  virtual void on_bytes(std::string_view bytes, TimeNs now) = 0;
  virtual void on_writable(TimeNs now) = 0;  // everything queued was sent
  // The connection is lost: requests in flight have this outcome.
  virtual void on_lost(const Outcome& outcome, TimeNs now) = 0;
  // It could not be opened: each client would have sent now, and its request has failed.
  virtual void fail_waiting(const Outcome& outcome, TimeNs now) = 0;
  virtual void expire_requests(TimeNs now) = 0;

  // Sends bytes now if possible, otherwise later.
  void send(std::string_view bytes, TimeNs now);
  bool is_open() const { return state_ == State::open; }
  bool write_blocked() const { return sent_ < out_.size(); }
  // Closes the connection. Requests in flight end with `outcome`.
  void lose(const Outcome& outcome, TimeNs now);
  void note_fault(std::string_view why);
  void mark_useful() { useful_ = true; }

  const Parts parts_;
  const uint32_t number_;  // among the worker's connections
  ByteStream stream_;

 private:
  void finish_opening(TimeNs now);
  void fail_to_open(const Outcome& outcome, TimeNs now);
  void read_all();
  bool flush(TimeNs now);
  void watch();

  State state_ = State::closed;
  std::string out_;
  size_t sent_ = 0;
  uint32_t watched_ = 0;
  TimeNs opened_at_ = 0;
  TimeNs reopen_at_ = 0;
  int64_t pause_ns_ = 0;
  bool useful_ = false;  // an answer came since it was opened
};

}  // namespace assay::load
