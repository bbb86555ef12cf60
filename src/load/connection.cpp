#include "load/connection.h"

#include <algorithm>

#include <sys/epoll.h>

namespace assay::load {
namespace {

constexpr int64_t kFirstPauseNs = 10 * kNsPerMs;
constexpr int64_t kLongestPauseNs = 500 * kNsPerMs;

}  // namespace

void Connection::open(TimeNs now) {
  if (state_ != State::closed) return;
  reopen_at_ = 0;
  opened_at_ = now;
  useful_ = false;
  out_.clear();
  sent_ = 0;
  watched_ = 0;
  if (!stream_.connect(parts_.address, parts_.tls)) {
    fail_to_open({OutcomeKind::connect, errno}, now);
    return;
  }
  state_ = State::connecting;
  watch();
}

void Connection::fail_to_open(const Outcome& outcome, TimeNs now) {
  stream_.close();
  state_ = State::closed;
  pause_ns_ = std::clamp(pause_ns_ * 2, kFirstPauseNs, kLongestPauseNs);
  reopen_at_ = now + pause_ns_;
  fail_waiting(outcome, now);
}

void Connection::finish_opening(TimeNs now) {
  ByteStream::Moved result = stream_.finish_connect();
  using enum ByteStream::State;
  if (result.state == again) return watch();
  if (result.state != moved) {
    bool handshake = !stream_.fault().empty() || result.state == closed;
    if (handshake) note_fault("TLS: " + stream_.fault());
    OutcomeKind kind = handshake ? OutcomeKind::tls : OutcomeKind::connect;
    return fail_to_open({kind, handshake ? 0 : result.code}, now);
  }
  if (parts_.workload.protocol != Protocol::http1 && !stream_.speaks_http2()) {
    note_fault("the server does not offer HTTP/2 (ALPN)");
    return fail_to_open({OutcomeKind::tls, 0}, now);
  }
  state_ = State::open;
  ++parts_.tally.connects;
  watch();
  on_open(now);
}

void Connection::watch() {
  uint32_t wanted = EPOLLIN;
  if (state_ == State::connecting) wanted = stream_.wants_write() ? EPOLLOUT : EPOLLIN;
  if (state_ == State::open && write_blocked()) wanted |= EPOLLOUT;
  if (wanted == watched_) return;
  epoll_event event{};
  event.events = wanted;
  event.data.ptr = this;
  int operation = watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  ::epoll_ctl(parts_.epoll, operation, stream_.fd(), &event);
  watched_ = wanted;
}

void Connection::handle(uint32_t events) {
  if (state_ == State::closed) return;
  if (state_ == State::connecting) return finish_opening(monotonic_ns());
  if ((events & EPOLLOUT) != 0) {
    TimeNs now = monotonic_ns();
    if (!flush(now)) return;
    if (!write_blocked()) on_writable(now);
  }
  if (is_open() && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read_all();
}

void Connection::read_all() {
  while (is_open()) {
    ByteStream::Moved got = stream_.read(parts_.buffer);
    using enum ByteStream::State;
    if (got.state == again) return;
    TimeNs now = monotonic_ns();
    if (got.state == closed) return lose({OutcomeKind::closed, 0}, now);
    if (got.state == failed) return lose({OutcomeKind::reset, got.code}, now);
    parts_.tally.bytes_in += got.bytes;
    on_bytes({parts_.buffer.data(), got.bytes}, now);
    // A short read emptied the socket: another read would cost a system call per answer.
    if (got.bytes < parts_.buffer.size() && !stream_.has_tls()) return;
  }
}

void Connection::send(std::string_view bytes, TimeNs now) {
  if (!write_blocked()) {
    out_.clear();
    sent_ = 0;
    ByteStream::Moved put = stream_.write(bytes);
    if (put.state == ByteStream::State::moved) bytes.remove_prefix(put.bytes);
    if (bytes.empty()) return;
    // If the peer answered and closed without reading all, its answer is still in our socket.
    if (put.state == ByteStream::State::failed && put.code != EPIPE && put.code != ECONNRESET) {
      return lose({OutcomeKind::reset, put.code}, now);
    }
  }
  out_ += bytes;
  watch();
}

// False when the connection was lost.
bool Connection::flush(TimeNs now) {
  while (write_blocked()) {
    ByteStream::Moved put = stream_.write(std::string_view(out_).substr(sent_));
    if (put.state == ByteStream::State::again) break;
    if (put.state != ByteStream::State::moved) {
      read_all();
      if (is_open()) lose({OutcomeKind::reset, put.code}, now);
      return false;
    }
    sent_ += put.bytes;
  }
  if (!write_blocked()) {
    out_.clear();
    sent_ = 0;
  }
  watch();
  return true;
}

void Connection::lose(const Outcome& outcome, TimeNs now) {
  if (state_ == State::closed) return;
  stream_.close();
  state_ = State::closed;
  out_.clear();
  sent_ = 0;
  on_lost(outcome, now);
  if (useful_) {
    pause_ns_ = 0;
    parts_.dispatcher.wants_open(*this);
    return;
  }
  pause_ns_ = std::clamp(pause_ns_ * 2, kFirstPauseNs, kLongestPauseNs);
  reopen_at_ = now + pause_ns_;
}

void Connection::expire(TimeNs now) {
  if (state_ == State::closed) {
    if (reopen_at_ != 0 && now >= reopen_at_) open(now);
    return;
  }
  if (state_ == State::connecting) {
    if (now - opened_at_ >= parts_.timeout_ns) {
      fail_to_open({OutcomeKind::connect, ETIMEDOUT}, now);
    }
    return;
  }
  expire_requests(now);
}

void Connection::note_fault(std::string_view why) {
  if (parts_.tally.first_protocol_fault.empty()) parts_.tally.first_protocol_fault = why;
}

}  // namespace assay::load
