// ByteStream: a non-blocking connection, unencrypted or with TLS.
//
// Every call returns at once. read() and write() move as many bytes as they can; `again` means that
// the socket is not ready (wants_write() says for which direction). Owned and used by one
// connection of one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "load/address.h"
#include "load/tls_context.h"

namespace assay::load {

class ByteStream {
 public:
  enum class State : uint8_t { moved, again, closed, failed };
  struct Moved {
    State state = State::again;
    size_t bytes = 0;
    int code = 0;  // errno when failed
  };

  // Begins to connect; false with errno when that fails at once.
  bool connect(const Address& address, const TlsContext* tls);
  // After the socket became writable: `moved` when the connection (and its TLS session) is
  // established.
  Moved finish_connect();
  Moved read(std::span<char> into);
  Moved write(std::string_view bytes);
  void close();

  int fd() const { return fd_.get(); }
  bool wants_write() const { return wants_write_; }  // what the last `again` waits for
  // TLS may have buffered bytes, so the socket does not poll as readable.
  bool has_pending() const;
  bool speaks_http2() const;  // what ALPN chose; true without TLS
  bool has_tls() const { return ssl_ != nullptr; }
  const std::string& fault() const { return fault_; }  // of a failed handshake, in words

 private:
  Moved tls_result(int result, bool handshake);

  UniqueFd fd_;
  SslPtr ssl_;
  bool tcp_connected_ = false;
  bool wants_write_ = false;
  std::string fault_;
};

}  // namespace assay::load
