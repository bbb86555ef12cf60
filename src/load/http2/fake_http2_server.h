// FakeHttp2Server: an HTTP/2 server in the test's own process whose answers the test chooses.
// Test support only.
#pragma once

#include <map>
#include <memory>

#include <nghttp2/nghttp2.h>

#include "load/http1/fake_server.h"
#include "load/workload.h"

namespace assay::load {

// What to do with one request.
struct FakeAnswer {
  std::string status = "200";
  std::string body;
  std::string grpc_status;     // "": no trailers
  bool silent = false;         // never answers
  uint32_t reset = 0;          // RST_STREAM with this code instead
  bool goaway_before = false;  // GOAWAY naming the streams before this one; it is not answered
  bool goaway_after = false;   // answers, then accepts no more streams
};

class FakeHttp2Server {
 public:
  // Number of the request on all connections, its path and its body.
  using Choose =
      std::function<FakeAnswer(int number, const std::string& path, const std::string& body)>;

  explicit FakeHttp2Server(Choose choose)
      : choose_(std::move(choose)), server_([this](int fd, int) { serve(fd); }) {}

  std::string url(const std::string& path = "/") const { return server_.url(path); }
  std::string grpc_url(const std::string& method) const {
    return "grpc://127.0.0.1:" + std::to_string(server_.port()) + method;
  }
  int connections() const { return server_.connections(); }

 private:
  struct Stream {
    std::string path, request_body;
    FakeAnswer answer;
    size_t sent = 0;
  };
  struct Conversation {
    FakeHttp2Server* server = nullptr;
    nghttp2_session* session = nullptr;
    std::map<int32_t, Stream> streams;
  };

  void serve(int fd) {
    Conversation conversation;
    conversation.server = this;
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_server_new(&conversation.session, callbacks, &conversation);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(conversation.session, NGHTTP2_FLAG_NONE, nullptr, 0);
    std::string bytes;
    while (write_frames(fd, conversation.session) && server_.read_some(fd, bytes)) {
      auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
      if (nghttp2_session_mem_recv(conversation.session, data, bytes.size()) < 0) break;
      bytes.clear();
    }
    nghttp2_session_del(conversation.session);
    // As servers do: closing with unread bytes would reset the connection and lose the answer.
    ::shutdown(fd, SHUT_WR);
    server_.wait_for_stop_or_close(fd);
  }

  // False when there is nothing left to send or receive.
  static bool write_frames(int fd, nghttp2_session* session) {
    const uint8_t* data = nullptr;
    ssize_t size = 0;
    while ((size = nghttp2_session_mem_send(session, &data)) > 0) {
      std::string_view bytes(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
      if (!FakeServer::write_all(fd, bytes)) return false;
    }
    return nghttp2_session_want_read(session) != 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    std::string key(reinterpret_cast<const char*>(name), name_size);
    if (key == ":path") {
      static_cast<Conversation*>(user)->streams[frame->hd.stream_id].path.assign(
          reinterpret_cast<const char*>(value), value_size);
    }
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                     void* user) {
    static_cast<Conversation*>(user)->streams[stream].request_body.append(
        reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    if (ends)
      static_cast<Conversation*>(user)->server->answer(*static_cast<Conversation*>(user),
                                                       frame->hd.stream_id);
    return 0;
  }

  void answer(Conversation& conversation, int32_t id) {
    Stream& stream = conversation.streams[id];
    stream.answer = choose_(requests_++, stream.path, stream.request_body);
    const FakeAnswer& chosen = stream.answer;
    nghttp2_session* session = conversation.session;
    if (chosen.goaway_before || chosen.goaway_after) {
      nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                            chosen.goaway_before ? std::max(0, id - 2) : id, NGHTTP2_NO_ERROR,
                            nullptr, 0);
    }
    if (chosen.silent || chosen.goaway_before) return;
    if (chosen.reset != 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, chosen.reset);
      return;
    }
    nghttp2_nv headers[] = {pair(":status", chosen.status)};
    nghttp2_data_provider provider{};
    provider.source.ptr = &stream;
    provider.read_callback = read_body;
    nghttp2_submit_response(session, id, headers, 1, &provider);
  }

  static nghttp2_nv pair(const char* name, const std::string& value) {
    return {reinterpret_cast<uint8_t*>(const_cast<char*>(name)),
            reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), strlen(name), value.size(),
            NGHTTP2_NV_FLAG_NONE};
  }

  static ssize_t read_body(nghttp2_session* session, int32_t id, uint8_t* into, size_t room,
                           uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* stream = static_cast<Stream*>(source->ptr);
    std::string_view rest = std::string_view(stream->answer.body).substr(stream->sent);
    size_t size = std::min(room, rest.size());
    std::copy_n(rest.data(), size, reinterpret_cast<char*>(into));
    stream->sent += size;
    if (stream->sent == stream->answer.body.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream->answer.grpc_status.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv trailers[] = {pair("grpc-status", stream->answer.grpc_status)};
        nghttp2_submit_trailer(session, id, trailers, 1);
      }
    }
    return static_cast<ssize_t>(size);
  }

  Choose choose_;
  std::atomic<int> requests_{0};
  FakeServer server_;
};

}  // namespace assay::load
