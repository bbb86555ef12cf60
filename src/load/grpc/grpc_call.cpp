#include "load/grpc/grpc_call.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include <nghttp2/nghttp2.h>
#include <poll.h>

#include "base/clock.h"
#include "load/byte_stream.h"
#include "load/result/outcome.h"

namespace assay::load {
namespace {

constexpr size_t kMostAnswerBytes = 64 << 20;

nghttp2_nv pair_of(std::string_view name, std::string_view value) {
  auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

class Call {
 public:
  explicit Call(const GrpcPeer& peer) : peer_(peer) {}

  Result<std::vector<std::string>> run(const std::string& path, std::string_view message) {
    deadline_ = monotonic_ns() + peer_.timeout_ns;
    if (auto connected = connect(); !connected) return std::unexpected(connected.error());
    if (!submit(path, message)) return fail("cannot start an HTTP/2 session");
    while (!closed_) {
      if (auto moved = exchange(); !moved) return std::unexpected(moved.error());
    }
    return result();
  }

 private:
  // A server that is starting may succeed a moment later; a server that refuses will refuse again.
  static std::unexpected<Error> not_reached(std::string what) {
    return fail_with_remedy(std::move(what), "", ENOTCONN);
  }

  Result<void> wait(bool for_write) {
    int64_t left = (deadline_ - monotonic_ns()) / kNsPerMs;
    pollfd waiting{stream_.fd(), static_cast<short>(for_write ? POLLOUT : POLLIN), 0};
    int ready =
        left > 0 ? ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000))) : 0;
    if (ready == 0) return not_reached(peer_.address.text() + " does not answer");
    return {};
  }

  Result<void> connect() {
    if (!stream_.connect(peer_.address, peer_.tls)) {
      return fail_errno("cannot connect to {}", peer_.address.text());
    }
    while (true) {
      if (auto ready = wait(stream_.wants_write()); !ready) return ready;
      auto moved = stream_.finish_connect();
      if (moved.state == ByteStream::State::moved) break;
      if (moved.state == ByteStream::State::again) continue;
      return not_reached(
          fmt::format("cannot connect to {}: {}", peer_.address.text(),
                      stream_.fault().empty() ? std::strerror(moved.code) : stream_.fault()));
    }
    if (!stream_.speaks_http2()) return fail("{} does not offer HTTP/2", peer_.address.text());
    return {};
  }

  bool submit(const std::string& path, std::string_view message) {
    nghttp2_session_callbacks* made = nullptr;
    if (::nghttp2_session_callbacks_new(&made) != 0) return false;
    ::nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
    ::nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    nghttp2_session* session = nullptr;
    int failed = ::nghttp2_session_client_new(&session, made, this);
    ::nghttp2_session_callbacks_del(made);
    if (failed != 0) return false;
    session_.reset(session);
    ::nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
    std::vector<nghttp2_nv> headers{
        pair_of(":method", "POST"), pair_of(":scheme", peer_.url.tls ? "https" : "http"),
        pair_of(":authority", peer_.url.authority), pair_of(":path", path)};
    for (const Header& header : peer_.headers)
      headers.push_back(pair_of(header.name, header.value));
    body_ = grpc_frame(message);
    nghttp2_data_provider provider{};
    provider.read_callback = read_body;
    return ::nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &provider,
                                    nullptr) > 0;
  }

  // Sends the request, then reads the answer.
  Result<void> exchange() {
    const uint8_t* data = nullptr;
    ssize_t size = 0;
    while ((size = ::nghttp2_session_mem_send(session_.get(), &data)) > 0) {
      out_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    while (!out_.empty()) {
      auto put = stream_.write(out_);
      if (put.state == ByteStream::State::again) break;
      if (put.state != ByteStream::State::moved) return lost(put.code);
      out_.erase(0, put.bytes);
    }
    std::array<char, 16 << 10> buffer{};
    auto got = stream_.read(buffer);
    if (got.state == ByteStream::State::again) return wait(!out_.empty());
    if (got.state != ByteStream::State::moved) return lost(got.code);
    auto* bytes = reinterpret_cast<const uint8_t*>(buffer.data());
    ssize_t taken = ::nghttp2_session_mem_recv(session_.get(), bytes, got.bytes);
    if (taken < 0 || answer_.size() > kMostAnswerBytes) {
      return fail("{} answers with something that is not gRPC: {}", peer_.address.text(),
                  taken < 0 ? ::nghttp2_strerror(static_cast<int>(taken)) : "too long");
    }
    return {};
  }

  std::unexpected<Error> lost(int code) const {
    return not_reached(fmt::format("{} closed the connection without an answer{}{}",
                                   peer_.address.text(), code != 0 ? ": " : "",
                                   code != 0 ? std::strerror(code) : ""));
  }

  Result<std::vector<std::string>> result() const {
    if (grpc_status_ != 0) {
      Outcome outcome{OutcomeKind::grpc_status, grpc_status_};
      std::string why = grpc_status_ > 0     ? describe(outcome)
                        : http_status_ > 200 ? fmt::format("HTTP {}", http_status_)
                                             : "no gRPC status";
      return fail_with_remedy(fmt::format("{} answers: {}{}{}", peer_.address.text(), why,
                                          grpc_message_.empty() ? "" : ", ", grpc_message_),
                              "", grpc_status_);
    }
    std::vector<std::string> messages;
    std::string_view rest = answer_;
    while (rest.size() >= 5) {
      uint32_t size = 0;
      for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(rest[i]);
      if (rest[0] != 0 || size > rest.size() - 5) return fail("the gRPC answer is malformed");
      messages.emplace_back(rest.substr(5, size));
      rest.remove_prefix(5 + size);
    }
    return messages;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame*, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    auto* call = static_cast<Call*>(user);
    std::string_view key(reinterpret_cast<const char*>(name), name_size);
    std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == "grpc-message") call->grpc_message_ = text.substr(0, 200);
    int* number = key == ":status"       ? &call->http_status_
                  : key == "grpc-status" ? &call->grpc_status_
                                         : nullptr;
    if (number != nullptr) std::from_chars(text.data(), text.data() + text.size(), *number);
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t, const uint8_t* bytes, size_t size,
                     void* user) {
    static_cast<Call*>(user)->answer_.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_close(nghttp2_session*, int32_t, uint32_t, void* user) {
    static_cast<Call*>(user)->closed_ = true;
    return 0;
  }
  static ssize_t read_body(nghttp2_session*, int32_t, uint8_t* into, size_t room, uint32_t* flags,
                           nghttp2_data_source*, void* user) {
    auto* call = static_cast<Call*>(user);
    size_t size = std::min(room, call->body_.size());
    std::memcpy(into, call->body_.data(), size);
    call->body_.erase(0, size);
    if (call->body_.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  struct SessionDeleter {
    void operator()(nghttp2_session* session) const { ::nghttp2_session_del(session); }
  };

  const GrpcPeer& peer_;
  ByteStream stream_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  TimeNs deadline_ = 0;
  std::string body_, out_, answer_, grpc_message_;
  int http_status_ = 0;
  int grpc_status_ = -1;
  bool closed_ = false;
};

}  // namespace

Result<std::vector<std::string>> grpc_call(const GrpcPeer& peer, const std::string& path,
                                           std::string_view message) {
  return Call(peer).run(path, message);
}

}  // namespace assay::load
