#include "load/byte_stream.h"

#include <algorithm>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace assay::load {

bool ByteStream::connect(const Address& address, const TlsContext* tls) {
  close();
  fd_.reset(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return false;
  int yes = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (tls != nullptr) {
    ssl_ = tls->attach(fd_.get());
    if (!ssl_) return errno = ENOMEM, false;
  }
  auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd_.get(), name, address.size) != 0 && errno != EINPROGRESS) return false;
  wants_write_ = true;
  return true;
}

ByteStream::Moved ByteStream::finish_connect() {
  if (!tcp_connected_) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return {State::failed, 0, error};
    tcp_connected_ = true;
    wants_write_ = false;
  }
  if (!ssl_) return {State::moved, 0, 0};
  ::ERR_clear_error();
  int result = ::SSL_do_handshake(ssl_.get());
  if (result == 1) {
    wants_write_ = false;
    return {State::moved, 0, 0};
  }
  return tls_result(result, true);
}

ByteStream::Moved ByteStream::tls_result(int result, bool handshake) {
  int code = errno;
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_write_ = false;
      return {State::again, 0, 0};
    case SSL_ERROR_WANT_WRITE:
      wants_write_ = true;
      return {State::again, 0, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {State::closed, 0, 0};
    case SSL_ERROR_SYSCALL:
      if (handshake) fault_ = code != 0 ? std::strerror(code) : tls_fault(nullptr);
      if (code == 0 || code == EAGAIN) return {State::closed, 0, 0};
      return {State::failed, 0, code};
    default:
      // Many servers close the connection without a TLS close_notify.
      if (!handshake && ERR_GET_REASON(::ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        ::ERR_clear_error();
        return {State::closed, 0, 0};
      }
      fault_ = tls_fault(handshake ? ssl_.get() : nullptr);
      return {State::failed, 0, EPROTO};
  }
}

ByteStream::Moved ByteStream::read(std::span<char> into) {
  if (ssl_) {
    ::ERR_clear_error();
    errno = 0;
    int result = ::SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size()));
    if (result > 0) return {State::moved, static_cast<size_t>(result), 0};
    return tls_result(result, false);
  }
  ssize_t count = ::recv(fd_.get(), into.data(), into.size(), 0);
  if (count > 0) return {State::moved, static_cast<size_t>(count), 0};
  if (count == 0) return {State::closed, 0, 0};
  if (errno == EAGAIN || errno == EINTR) return {State::again, 0, 0};
  return {State::failed, 0, errno};
}

ByteStream::Moved ByteStream::write(std::string_view bytes) {
  if (ssl_) {
    ::ERR_clear_error();
    errno = 0;
    size_t most = std::min<size_t>(bytes.size(), INT32_MAX);
    int result = ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(most));
    if (result > 0) return {State::moved, static_cast<size_t>(result), 0};
    return tls_result(result, false);
  }
  ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return {State::moved, static_cast<size_t>(count), 0};
  wants_write_ = true;
  if (errno == EAGAIN || errno == EINTR) return {State::again, 0, 0};
  return {State::failed, 0, errno};
}

bool ByteStream::has_pending() const {
  return ssl_ && ::SSL_pending(ssl_.get()) > 0;
}

bool ByteStream::speaks_http2() const {
  if (!ssl_) return true;
  const unsigned char* name = nullptr;
  unsigned size = 0;
  ::SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return size == 2 && name[0] == 'h' && name[1] == '2';
}

void ByteStream::close() {
  ssl_.reset();
  fd_.reset();
  tcp_connected_ = false;
  wants_write_ = false;
  fault_.clear();
}

}  // namespace assay::load
