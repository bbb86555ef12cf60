// Http1Connection: one client that sends HTTP/1.1 requests over a connection kept alive as long as
// the server keeps it. Not pipelined. See Connection.
#pragma once

#include "load/connection.h"
#include "load/http1/http1_response.h"

namespace assay::load {

class Http1Connection final : public Connection {
 public:
  Http1Connection(const Parts& parts, uint32_t number)
      : Connection(parts, number), to_head_(parts.workload.method == "HEAD") {}

  bool send_one(TimeNs now) override;
  uint64_t in_flight() const override { return busy_ ? 1 : 0; }
  TimeNs oldest_intended() const override { return busy_ ? ticket_.intended : INT64_MAX; }

 private:
  void on_open(TimeNs now) override;
  void on_bytes(std::string_view bytes, TimeNs now) override;
  void on_writable(TimeNs) override {}
  void on_lost(const Outcome& outcome, TimeNs now) override;
  void fail_waiting(const Outcome& outcome, TimeNs now) override;
  void expire_requests(TimeNs now) override;
  void finish(const Outcome& outcome, TimeNs now);

  bool to_head_;
  bool busy_ = false;
  Ticket ticket_;
  TimeNs sent_at_ = 0;
  Http1Response response_;
};

}  // namespace assay::load
