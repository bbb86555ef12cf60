#include "load/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace assay::load {
namespace {

constexpr unsigned char kAlpnHttp2[] = "\x02h2";
constexpr unsigned char kAlpnHttp1[] = "\x08http/1.1";

bool is_address(const std::string& host) {
  in6_addr any{};
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

void SslDeleter::operator()(ssl_st* ssl) const {
  ::SSL_free(ssl);
}

Result<std::unique_ptr<TlsContext>> TlsContext::create(const TlsOptions& options,
                                                       const std::string& host, bool http2) {
  std::unique_ptr<TlsContext> tls(new TlsContext());
  tls->context_ = ::SSL_CTX_new(::TLS_client_method());
  if (tls->context_ == nullptr) return fail("cannot prepare TLS: {}", tls_fault(nullptr));
  tls->host_ = host;
  tls->insecure_ = options.insecure;
  ::SSL_CTX_set_min_proto_version(tls->context_, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(tls->context_, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
  if (http2) {
    ::SSL_CTX_set_alpn_protos(tls->context_, kAlpnHttp2, sizeof kAlpnHttp2 - 1);
  } else {
    ::SSL_CTX_set_alpn_protos(tls->context_, kAlpnHttp1, sizeof kAlpnHttp1 - 1);
  }
  ::SSL_CTX_set_verify(tls->context_, options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                       nullptr);
  if (options.insecure) return tls;
  if (options.trust_file.empty()) {
    ::SSL_CTX_set_default_verify_paths(tls->context_);
  } else if (::SSL_CTX_load_verify_locations(tls->context_, options.trust_file.c_str(), nullptr) !=
             1) {
    return fail("cannot read certificates from {}: {}", options.trust_file, tls_fault(nullptr));
  }
  return tls;
}

TlsContext::~TlsContext() {
  ::SSL_CTX_free(context_);
}

SslPtr TlsContext::attach(int fd) const {
  SslPtr ssl(::SSL_new(context_));
  if (!ssl || ::SSL_set_fd(ssl.get(), fd) != 1) return nullptr;
  if (is_address(host_)) {
    if (!insecure_) ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl.get()), host_.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl.get(), host_.c_str());
    if (!insecure_) ::SSL_set1_host(ssl.get(), host_.c_str());
  }
  ::SSL_set_connect_state(ssl.get());
  return ssl;
}

std::string tls_fault(const ssl_st* ssl) {
  unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  if (ssl != nullptr) {
    long verified = ::SSL_get_verify_result(ssl);
    if (verified != X509_V_OK) {
      bool other_name =
          verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH;
      return fmt::format("certificate not trusted: {} ({})",
                         ::X509_verify_cert_error_string(verified),
                         other_name ? "use the name that it is for, or --insecure"
                                    : "--cacert FILE trusts it, --insecure any");
    }
  }
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason == nullptr ? "the peer ended the handshake" : reason;
}

}  // namespace assay::load
