// The only file that includes Boost.Beast: it costs half a minute to compile.
#include "view/http_server.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <optional>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <sys/random.h>

namespace assay::view {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Message = http::response<http::string_body>;

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

// Takes as long for a wrong token as for the right one.
bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string bracketed(const std::string& address) {
  return address.find(':') == address.npos ? address : "[" + address + "]";
}

class Connection;

struct Shared {
  ServerOptions options;
  Handler handler;
  uint16_t port = 0;
  // The two belong to the thread of run(); destructors of connections count down on any.
  std::list<Connection*> strangers;  // the one that has waited longest comes first
  std::atomic<size_t> known{0};
  asio::thread_pool workers{4};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)),
        shared_(shared),
        place_(shared.strangers.insert(shared.strangers.end(), this)) {}
  ~Connection() {
    if (is_known_) --shared_.known;
    leave_strangers();
  }

  // Its place is needed. What is under way ends with an error, and the connection with it.
  void give_way() {
    leave_strangers();
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.header_limit));
    parser_->body_limit(shared_.options.body_limit);
    const ServerOptions& options = shared_.options;
    stream_.expires_after(is_known_ ? options.patience
                                    : std::min(options.patience, options.stranger_patience));
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, size_t) { self->have_read(error); });
  }

 private:
  void have_read(beast::error_code error) {
    if (error == http::error::body_limit) return refuse(413, "the request is too large\n");
    if (error == http::error::header_limit) return refuse(431, "the header is too large\n");
    if (error == http::error::end_of_stream || error == beast::error::timeout) return close();
    if (error == asio::error::operation_aborted) return;  // it gave way
    if (error) return refuse(400, "this is no HTTP request\n");
    const auto& message = parser_->get();
    version_ = message.version();
    keep_alive_ = message.keep_alive();
    if (!host_matches({message[http::field::host].data(), message[http::field::host].size()},
                      shared_.options.address, shared_.port)) {
      return refuse(421, "this server does not go by that name\n");
    }
    std::string_view target(message.target().data(), message.target().size());
    std::string_view token = shared_.options.token;
    // "/TOKEN/rest"
    bool known = target.size() > token.size() + 1 && target[0] == '/' &&
                 target[token.size() + 1] == '/' &&
                 same_text(target.substr(1, token.size()), token);
    if (!known) return refuse(403, "the address of the page has a secret part; this is not it\n");
    if (!become_known()) return refuse(503, "too many connections of this page are open\n");
    auto gone = std::make_shared<std::atomic<bool>>(false);
    Request request{std::string(message.method_string()),
                    std::string(target.substr(token.size() + 1)), message.body(), gone};
    stream_.expires_never();  // while it is being answered
    watch_for_close(gone);
    asio::post(shared_.workers, [self = shared_from_this(), request = std::move(request)]() {
      Response response = self->shared_.handler(request);
      asio::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
        self->write(std::move(response));
      });
    });
  }

  bool become_known() {
    if (is_known_) return true;
    if (shared_.known >= shared_.options.most_connections) return false;
    ++shared_.known;
    is_known_ = true;
    leave_strangers();
    return true;
  }

  void leave_strangers() {
    if (place_) shared_.strangers.erase(*place_);
    place_.reset();
  }

  // A page that no longer wants the answer closes the connection. Input before the answer can only
  // mean that, because a client sends its next request after the answer. Ended by write().
  void watch_for_close(const std::shared_ptr<std::atomic<bool>>& gone) {
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this(), gone](beast::error_code error) {
                                  if (error) return;
                                  beast::error_code failed;
                                  bool nothing = self->stream_.socket().available(failed) == 0;
                                  if (failed || nothing) *gone = true;
                                });
  }

  void refuse(int status, const char* text) {
    keep_alive_ = false;
    Response response;
    response.status = status;
    response.body = text;
    write(std::move(response));
  }

  void write(Response response) {
    beast::error_code ignored;
    stream_.socket().cancel(ignored);
    message_.emplace(static_cast<http::status>(response.status), version_);
    message_->set(http::field::content_type, response.type);
    message_->set(http::field::cache_control, "no-store");
    message_->set("Content-Security-Policy", kPolicy);
    message_->set("X-Content-Type-Options", "nosniff");
    message_->set("X-Frame-Options", "DENY");
    message_->set("Referrer-Policy", "no-referrer");
    message_->set("Cross-Origin-Resource-Policy", "same-origin");
    message_->set("Cross-Origin-Opener-Policy", "same-origin");
    if (!response.file_name.empty()) {
      message_->set(http::field::content_disposition,
                    "attachment; filename=\"" + response.file_name + "\"");
    }
    message_->keep_alive(keep_alive_);
    message_->body() = std::move(response.body);
    message_->prepare_payload();
    stream_.expires_after(shared_.options.patience);
    http::async_write(stream_, *message_,
                      [self = shared_from_this()](beast::error_code error, size_t) {
                        if (error || !self->keep_alive_) return self->close();
                        self->read();
                      });
  }

  void close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  std::optional<std::list<Connection*>::iterator> place_;  // among the strangers
  bool is_known_ = false;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<Message> message_;
  unsigned version_ = 11;
  bool keep_alive_ = false;
};

class BeastServer final : public HttpServer {
 public:
  BeastServer(const ServerOptions& options, Handler handler)
      : acceptor_(context_), signals_(context_) {
    shared_.options = options;
    shared_.handler = std::move(handler);
  }
  ~BeastServer() override { shared_.workers.join(); }

  Result<void> listen() {
    UniqueFd own;
    int fd = shared_.options.socket;
    if (fd < 0) {
      auto made = listen_on(shared_.options.address, shared_.options.port);
      if (!made) return std::unexpected(made.error());
      own = std::move(*made);
      fd = own.get();
    }
    beast::error_code error;
    auto address = asio::ip::make_address(shared_.options.address, error);
    acceptor_.assign(tcp::endpoint(address, 0).protocol(), fd, error);
    if (error) return fail("cannot listen: {}", error.message());
    (void)own.release();
    shared_.port = acceptor_.local_endpoint().port();
    return {};
  }

  uint16_t port() const override { return shared_.port; }
  std::string url() const override {
    return fmt::format("http://{}:{}/{}/", bracketed(shared_.options.address), shared_.port,
                       shared_.options.token);
  }

  void run() override {
    if (shared_.options.stop_on_signals) {
      signals_.add(SIGINT);
      signals_.add(SIGTERM);
      signals_.async_wait([this](beast::error_code error, int) {
        if (!error) context_.stop();
      });
    }
    accept();
    context_.run();
  }
  void stop() override { context_.stop(); }

 private:
  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (!error) {
        auto& strangers = shared_.strangers;
        if (strangers.size() >= shared_.options.most_strangers) strangers.front()->give_way();
        std::make_shared<Connection>(std::move(socket), shared_)->read();
      }
      if (error != asio::error::operation_aborted) accept();
    });
  }

  Shared shared_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::signal_set signals_;
};

}  // namespace

Result<UniqueFd> listen_on(const std::string& address, uint16_t port) {
  beast::error_code error;
  auto parsed = asio::ip::make_address(address, error);
  if (error)
    return fail_with_remedy(fmt::format("{} is no IP address", address),
                            "assay view --bind 127.0.0.1 …");
  asio::io_context context{1};
  tcp::acceptor acceptor(context);
  tcp::endpoint endpoint(parsed, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail_with_remedy(
        fmt::format("cannot listen on {}:{}: {}", bracketed(address), port, error.message()),
        "assay view without --port takes a free one", error.value());
  }
  return UniqueFd(acceptor.release());
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ServerOptions& options,
                                                      Handler handler) {
  auto server = std::make_unique<BeastServer>(options, std::move(handler));
  if (auto listening = server->listen(); !listening) return std::unexpected(listening.error());
  return server;
}

Result<std::string> new_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    return fail_errno("cannot get random numbers from the kernel");
  }
  std::string token;
  for (unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool is_loopback(const std::string& address) {
  boost::system::error_code error;
  auto parsed = asio::ip::make_address(address, error);
  return !error && parsed.is_loopback();
}

bool host_matches(std::string_view host, const std::string& address, uint16_t port) {
  std::string ending = fmt::format(":{}", port);
  if (!host.ends_with(ending)) return false;
  std::string name(host.substr(0, host.size() - ending.size()));
  if (is_loopback(address) && name == "localhost") return true;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  boost::system::error_code bad_name, bad_address;
  auto asked = asio::ip::make_address(name, bad_name);
  auto bound = asio::ip::make_address(address, bad_address);
  // Another site's name can be made to point here; a number cannot be anybody's name.
  if (bad_name || bad_address) return false;
  return bound.is_unspecified() || asked == bound;
}

}  // namespace assay::view
