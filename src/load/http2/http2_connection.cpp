#include "load/http2/http2_connection.h"

#include <algorithm>
#include <cstring>

namespace assay::load {
namespace {

constexpr int32_t kWindowBytes = (1 << 30) - 1;  // load must not wait for our window updates
constexpr size_t kWriteBytes = 64 << 10;         // frames are put together up to here

uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
}

nghttp2_nv pair_of(std::string_view name, std::string_view value) {
  // The bytes outlive the session, so nghttp2 need not copy them.
  return {bytes_of(name), bytes_of(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

}  // namespace

void Http2CallbacksDeleter::operator()(nghttp2_session_callbacks* callbacks) const {
  ::nghttp2_session_callbacks_del(callbacks);
}
void Http2SessionDeleter::operator()(nghttp2_session* session) const {
  ::nghttp2_session_del(session);
}

// What nghttp2 calls while it takes bytes; each finds its client by the stream.
struct Http2Events {
  using Client = Http2Connection::Client;

  static Client* client(nghttp2_session* session, int32_t stream) {
    return static_cast<Client*>(::nghttp2_session_get_stream_user_data(session, stream));
  }

  static int header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                    size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void*) {
    Client* of = client(session, frame->hd.stream_id);
    if (of == nullptr) return 0;
    std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (name_size == 7 && std::memcmp(name, ":status", 7) == 0) {
      of->status = 0;
      for (char c : text) of->status = of->status * 10 + (c - '0');  // nghttp2 checked the digits
    } else if (name_size == 11 && std::memcmp(name, "grpc-status", 11) == 0) {
      of->grpc.set_status(text);
    }
    return 0;
  }

  static int data(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* bytes,
                  size_t size, void* user) {
    auto* connection = static_cast<Http2Connection*>(user);
    Client* of = client(session, stream);
    if (of == nullptr || !connection->grpc()) return 0;
    connection->parts_.tally.messages +=
        of->grpc.feed({reinterpret_cast<const char*>(bytes), size});
    return 0;
  }

  static int frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      static_cast<Http2Connection*>(user)->going_away_ = true;
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)) {
      if (Client* of = client(session, frame->hd.stream_id)) of->ended = true;
    }
    return 0;
  }

  // nghttp2 closes the connection by itself when the peer violates the protocol.
  static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY || frame->goaway.error_code == NGHTTP2_NO_ERROR) return 0;
    auto* connection = static_cast<Http2Connection*>(user);
    connection->broken_ = true;
    connection->note_fault(
        fmt::format("HTTP/2 {}", ::nghttp2_http2_strerror(frame->goaway.error_code)));
    return 0;
  }

  static int stream_closed(nghttp2_session* session, int32_t stream, uint32_t error_code,
                           void* user) {
    if (Client* of = client(session, stream)) {
      static_cast<Http2Connection*>(user)->stream_closed(*of, error_code);
    }
    return 0;
  }

  static ssize_t read_body(nghttp2_session*, int32_t stream, uint8_t* into, size_t room,
                           uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* of = static_cast<Client*>(source->ptr);
    if (of->stream != stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // it timed out
    std::string_view rest = of->body.substr(of->body_sent);
    size_t size = std::min(room, rest.size());
    std::memcpy(into, rest.data(), size);
    of->body_sent += size;
    if (of->body_sent == of->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  static nghttp2_session_callbacks* callbacks() {
    static const std::unique_ptr<nghttp2_session_callbacks, Http2CallbacksDeleter> all = [] {
      nghttp2_session_callbacks* made = nullptr;
      ::nghttp2_session_callbacks_new(&made);
      ::nghttp2_session_callbacks_set_on_header_callback(made, header);
      ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, data);
      ::nghttp2_session_callbacks_set_on_frame_recv_callback(made, frame);
      ::nghttp2_session_callbacks_set_on_frame_send_callback(made, sent);
      ::nghttp2_session_callbacks_set_on_stream_close_callback(made, stream_closed);
      return std::unique_ptr<nghttp2_session_callbacks, Http2CallbacksDeleter>(made);
    }();
    return all.get();
  }
};

Http2Connection::Http2Connection(const Parts& parts, uint32_t number, uint32_t streams)
    : Connection(parts, number), all_(streams) {
  for (size_t i = all_.size(); i-- > 0;) idle_.push_back(&all_[i]);
  const Workload& work = parts_.workload;
  headers_.push_back(pair_of(":method", work.method));
  headers_.push_back(pair_of(":scheme", work.url.tls ? "https" : "http"));
  headers_.push_back(pair_of(":authority", work.url.authority));
  path_header_ = headers_.size();
  headers_.push_back(pair_of(":path", work.path.fixed_text()));
  for (const Header& header : work.headers) headers_.push_back(pair_of(header.name, header.value));
}

Http2Connection::~Http2Connection() = default;

bool Http2Connection::start_session() {
  nghttp2_session* made = nullptr;
  if (::nghttp2_session_client_new(&made, Http2Events::callbacks(), this) != 0) return false;
  session_.reset(made);
  nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(kWindowBytes)}};
  ::nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  ::nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
  return true;
}

void Http2Connection::on_open(TimeNs now) {
  going_away_ = broken_ = false;
  heard_ = false;
  if (!start_session()) return lose({OutcomeKind::protocol, 0}, now);
  fill(now);
  write_frames(now);
}

bool Http2Connection::send_one(TimeNs now) {
  if (!is_open() || going_away_ || idle_.empty()) return false;
  auto ticket = parts_.dispatcher.next(number_, now);
  if (!ticket) {
    parts_.dispatcher.has_room(*this);
    return true;
  }
  Client& client = *idle_.back();
  idle_.pop_back();
  ++busy_;
  client.ticket = *ticket;
  submit(client, now);
  write_frames(now);
  return is_open() && !idle_.empty();
}

// Gives every idle client a request, as far as requests are due.
void Http2Connection::fill(TimeNs now) {
  if (going_away_) return;
  if (to_resend_ > 0) {
    for (Client& client : all_) {
      if (client.resend && !submit(client, now)) return;
    }
  }
  while (!idle_.empty()) {
    auto ticket = parts_.dispatcher.next(number_, now);
    if (!ticket) {
      parts_.dispatcher.has_room(*this);
      return;
    }
    Client& client = *idle_.back();
    idle_.pop_back();
    ++busy_;
    client.ticket = *ticket;
    if (!submit(client, now)) return;
  }
}

void Http2Connection::set_resend(Client& client, bool resend) {
  if (client.resend == resend) return;
  client.resend = resend;
  resend ? ++to_resend_ : --to_resend_;
}

bool Http2Connection::submit(Client& client, TimeNs now) {
  set_resend(client, false);
  client.sent_at = now;
  client.status = 0;
  client.ended = false;
  client.body_sent = 0;
  client.grpc.begin();
  client.body = parts_.renderer.body(client.ticket.seq, client.body_text);
  if (!parts_.workload.path.fixed()) {
    std::string_view path = parts_.renderer.path(client.ticket.seq, client.path_text);
    headers_[path_header_] = pair_of(":path", path);
    headers_[path_header_].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = &client;
  provider.read_callback = Http2Events::read_body;
  client.stream =
      ::nghttp2_submit_request(session_.get(), nullptr, headers_.data(), headers_.size(),
                               client.body.empty() ? nullptr : &provider, &client);
  if (client.stream >= 0) return true;
  // Out of stream numbers, or the session is closing: the next connection takes it.
  client.stream = -1;
  set_resend(client, true);
  going_away_ = true;
  return false;
}

void Http2Connection::write_frames(TimeNs now) {
  while (is_open() && !write_blocked()) {
    frames_.clear();
    while (frames_.size() < kWriteBytes) {
      const uint8_t* data = nullptr;
      ssize_t size = ::nghttp2_session_mem_send(session_.get(), &data);
      if (size < 0) return lose({OutcomeKind::protocol, 0}, now);
      if (size == 0) break;
      frames_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    if (frames_.empty()) break;
    send(frames_, now);
  }
  // No request is in flight and the connection accepts no new ones: open the next connection.
  if (is_open() && going_away_ && idle_.size() + to_resend_ == all_.size()) {
    lose({OutcomeKind::closed, 0}, now);
  }
}

void Http2Connection::on_bytes(std::string_view bytes, TimeNs now) {
  now_ = now;
  if (!heard_ && bytes.starts_with("HTTP/1")) {
    note_fault("the server speaks HTTP/1, not HTTP/2");
    return lose({OutcomeKind::protocol, 0}, now);
  }
  heard_ = true;
  ssize_t taken = ::nghttp2_session_mem_recv(session_.get(), bytes_of(bytes), bytes.size());
  if (taken < 0) {
    note_fault(::nghttp2_strerror(static_cast<int>(taken)));
    return lose({OutcomeKind::protocol, 0}, now);
  }
  if (::nghttp2_session_want_read(session_.get()) == 0) {
    write_frames(now);
    if (is_open()) lose({broken_ ? OutcomeKind::protocol : OutcomeKind::closed, 0}, now);
    return;
  }
  fill(now);
  write_frames(now);
}

void Http2Connection::on_writable(TimeNs now) {
  write_frames(now);
}

Outcome Http2Connection::outcome_of(const Client& client, uint32_t error_code) const {
  if (error_code != NGHTTP2_NO_ERROR && !client.ended) {
    return {OutcomeKind::stream_reset, static_cast<int>(error_code)};
  }
  if (!client.ended || client.status == 0) return {OutcomeKind::protocol, 0};
  if (!grpc()) return http_outcome(client.status);
  if (client.status >= 400) return http_outcome(client.status);
  if (client.status != 200 || client.grpc.bad() || client.grpc.status() < 0)
    return {OutcomeKind::protocol, 0};
  if (client.grpc.status() != 0) return {OutcomeKind::grpc_status, client.grpc.status()};
  return client.grpc.between_messages() ? Outcome{} : Outcome{OutcomeKind::protocol, 0};
}

void Http2Connection::stream_closed(Client& client, uint32_t error_code) {
  if (client.stream < 0) return;
  mark_useful();
  bool unseen = error_code == NGHTTP2_REFUSED_STREAM && going_away_ && client.status == 0;
  if (unseen) {
    ++parts_.tally.retried;
    client.stream = -1;
    set_resend(client, true);
    return;
  }
  Outcome outcome = outcome_of(client, error_code);
  if (outcome.kind == OutcomeKind::protocol) {
    note_fault(grpc() && client.grpc.status() < 0 ? "the answer has no grpc-status"
                                                  : "the answer is not complete");
  }
  finish(client, outcome, now_);
}

void Http2Connection::finish(Client& client, const Outcome& outcome, TimeNs now) {
  client.stream = -1;
  set_resend(client, false);
  --busy_;
  idle_.push_back(&client);
  parts_.dispatcher.finished(client.ticket, outcome, now);
}

void Http2Connection::on_lost(const Outcome& outcome, TimeNs now) {
  session_.reset();
  for (Client& client : all_) {
    if (client.stream >= 0) finish(client, outcome, now);
  }
}

void Http2Connection::fail_waiting(const Outcome& outcome, TimeNs now) {
  for (Client& client : all_) {
    if (client.resend) finish(client, outcome, now);
  }
  for (size_t i = 0; i < all_.size(); ++i) {
    if (auto ticket = parts_.dispatcher.next(number_, now)) {
      parts_.dispatcher.finished(*ticket, outcome, now);
    }
  }
}

void Http2Connection::expire_requests(TimeNs now) {
  bool any = false;
  for (Client& client : all_) {
    if (client.stream < 0 || now - client.sent_at < parts_.timeout_ns) continue;
    ::nghttp2_session_set_stream_user_data(session_.get(), client.stream, nullptr);
    ::nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, client.stream, NGHTTP2_CANCEL);
    finish(client, {OutcomeKind::timeout, 0}, now);
    any = true;
  }
  if (!any) return;
  fill(now);
  write_frames(now);
}

TimeNs Http2Connection::oldest_intended() const {
  TimeNs oldest = INT64_MAX;
  for (const Client& client : all_) {
    if (client.stream >= 0 || client.resend) oldest = std::min(oldest, client.ticket.intended);
  }
  return oldest;
}

}  // namespace assay::load
