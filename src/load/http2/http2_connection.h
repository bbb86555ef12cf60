// Http2Connection: an HTTP/2 connection with a client per stream, for HTTP/2 and for gRPC.
//
// nghttp2 does framing, header compression and flow control; the socket is ours. Without TLS it
// uses HTTP/2 at once (prior knowledge). A request that the server refused unprocessed (GOAWAY,
// REFUSED_STREAM) is sent again on the next connection and keeps its intended time. See Connection.
#pragma once

#include <memory>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "load/connection.h"
#include "load/grpc/grpc_answer.h"

namespace assay::load {

struct Http2CallbacksDeleter {
  void operator()(nghttp2_session_callbacks* callbacks) const;
};
struct Http2SessionDeleter {
  void operator()(nghttp2_session* session) const;
};

class Http2Connection final : public Connection {
 public:
  Http2Connection(const Parts& parts, uint32_t number, uint32_t streams);
  ~Http2Connection() override;

  bool send_one(TimeNs now) override;
  uint64_t in_flight() const override { return busy_; }
  TimeNs oldest_intended() const override;

 private:
  struct Client {
    int32_t stream = -1;  // -1: no request
    Ticket ticket;
    TimeNs sent_at = 0;
    bool resend = false;  // refused without processing: the same request is sent again
    int status = 0;
    bool ended = false;  // the answer was complete
    uint64_t body_sent = 0;
    std::string_view body;
    std::string body_text, path_text;
    GrpcAnswer grpc;
  };
  friend struct Http2Events;

  void on_open(TimeNs now) override;
  void on_bytes(std::string_view bytes, TimeNs now) override;
  void on_writable(TimeNs now) override;
  void on_lost(const Outcome& outcome, TimeNs now) override;
  void fail_waiting(const Outcome& outcome, TimeNs now) override;
  void expire_requests(TimeNs now) override;

  bool start_session();
  void fill(TimeNs now);
  bool submit(Client& client, TimeNs now);
  void set_resend(Client& client, bool resend);
  void write_frames(TimeNs now);
  void stream_closed(Client& client, uint32_t error_code);
  Outcome outcome_of(const Client& client, uint32_t error_code) const;
  void finish(Client& client, const Outcome& outcome, TimeNs now);
  bool grpc() const { return parts_.workload.protocol == Protocol::grpc; }

  std::vector<Client> all_;
  std::vector<Client*> idle_;
  uint64_t busy_ = 0;
  size_t to_resend_ = 0;  // clients whose request waits for the next connection
  bool going_away_ = false;
  bool broken_ = false;  // the peer violated the protocol
  bool heard_ = false;   // bytes were received on this connection
  TimeNs now_ = 0;       // of the bytes being handled, for nghttp2's callbacks
  std::string frames_;
  std::vector<nghttp2_nv> headers_;
  size_t path_header_ = 0;
  std::unique_ptr<nghttp2_session, Http2SessionDeleter> session_;
};

}  // namespace assay::load
