#include "load/http1/http1_connection.h"

namespace assay::load {

bool Http1Connection::send_one(TimeNs now) {
  if (!is_open() || busy_) return false;
  auto ticket = parts_.dispatcher.next(number_, now);
  if (!ticket) {
    parts_.dispatcher.has_room(*this);
    return true;
  }
  ticket_ = *ticket;
  busy_ = true;
  sent_at_ = now;
  response_.begin(to_head_);
  send(parts_.renderer.http1(ticket_.seq), now);
  return false;
}

void Http1Connection::on_open(TimeNs now) {
  send_one(now);
}

void Http1Connection::finish(const Outcome& outcome, TimeNs now) {
  if (!busy_) return;
  busy_ = false;
  parts_.dispatcher.finished(ticket_, outcome, now);
}

void Http1Connection::on_bytes(std::string_view bytes, TimeNs now) {
  if (!busy_) return lose({OutcomeKind::protocol, 0}, now);  // no request is open
  switch (response_.feed(bytes)) {
    case Http1Response::Step::more:
      return;
    case Http1Response::Step::bad:
      note_fault(response_.fault());
      return lose({OutcomeKind::protocol, 0}, now);
    case Http1Response::Step::done:
      break;
  }
  mark_useful();
  finish(http_outcome(response_.status()), now);
  // The connection is closed when an answer came before its request was sent, or when more bytes
  // follow it.
  if (!bytes.empty()) note_fault("bytes follow an answer that was complete");
  bool usable = response_.keep_alive() && !write_blocked() && bytes.empty();
  if (!usable) return lose({OutcomeKind::closed, 0}, now);
  send_one(now);
}

void Http1Connection::on_lost(const Outcome& outcome, TimeNs now) {
  if (!busy_) return;
  bool by_close = outcome.kind == OutcomeKind::closed && response_.started();
  if (by_close && response_.end_of_stream() == Http1Response::Step::done) {
    mark_useful();
    return finish(http_outcome(response_.status()), now);
  }
  finish(outcome, now);
}

void Http1Connection::fail_waiting(const Outcome& outcome, TimeNs now) {
  if (auto ticket = parts_.dispatcher.next(number_, now)) {
    parts_.dispatcher.finished(*ticket, outcome, now);
  }
}

void Http1Connection::expire_requests(TimeNs now) {
  if (busy_ && now - sent_at_ >= parts_.timeout_ns) lose({OutcomeKind::timeout, 0}, now);
}

}  // namespace assay::load
