// One translation unit with as much debug information as header-only libraries can give it.
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace asio = boost::asio;
namespace beast = boost::beast;

std::string use_json(const std::string& text) {
  auto json = nlohmann::json::parse(text);
  json["x"] = {1, 2, 3};
  return json.dump(2);
}
bool use_regex(const std::string& text) {
  return std::regex_match(text, std::regex("([a-z]+)@([a-z]+)\\.com"));
}
std::string use_fmt() {
  return fmt::format("{}", std::map<std::string, std::vector<int>>{});
}

struct Session : std::enable_shared_from_this<Session> {
  explicit Session(asio::ip::tcp::socket socket) : stream(std::move(socket)) {}
  void run() {
    beast::http::async_read(stream, buffer, request,
                            [self = shared_from_this()](beast::error_code error, size_t) {
                              if (!error) self->reply();
                            });
  }
  void reply() {
    response.prepare_payload();
    beast::http::async_write(stream, response,
                             [self = shared_from_this()](beast::error_code error, size_t) {
                               if (!error) self->run();
                             });
  }
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  beast::http::request<beast::http::string_body> request;
  beast::http::response<beast::http::string_body> response;
};
void use_http(asio::ip::tcp::socket socket) {
  std::make_shared<Session>(std::move(socket))->run();
}
