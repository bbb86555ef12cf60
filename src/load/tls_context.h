// TlsContext: what the TLS connections of a run share: trust, ALPN, and sessions to resume.
//
// Certificates are checked against the system's store or the given file, and against the host's
// name, unless told not to. Threads: one context may serve several workers (OpenSSL counts
// references itself). Failures: a trust file that cannot be read.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace assay::load {

struct TlsOptions {
  bool insecure = false;   // accept any certificate
  std::string trust_file;  // PEM; empty: the system's
};

struct SslDeleter {
  void operator()(ssl_st* ssl) const;
};
using SslPtr = std::unique_ptr<ssl_st, SslDeleter>;

class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> create(const TlsOptions& options,
                                                    const std::string& host, bool http2);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  SslPtr attach(int fd) const;  // a client session on that socket; null when out of memory

 private:
  TlsContext() = default;
  ssl_ctx_st* context_ = nullptr;
  std::string host_;
  bool insecure_ = false;
};

// Why the last TLS call of this thread failed, in words; clears the queue.
std::string tls_fault(const ssl_st* ssl);

}  // namespace assay::load
