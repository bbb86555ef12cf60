#include "inject/inproc/http/http_request.h"

#include <string>

#include <gtest/gtest.h>

#include "inject/inproc/http/access.h"
#include "inject/inproc/http/listen_address.h"

namespace assay::inproc {
namespace {

struct Parsed {
  HttpParse result;
  HttpRequest request;
  int status = 0;
};

Parsed parse(std::string& bytes) {
  Parsed parsed;
  parsed.result = parse_request(bytes.data(), bytes.size(), parsed.request, parsed.status);
  return parsed;
}

TEST(HttpRequest, TakesAWholeRequest) {
  std::string bytes =
      "POST /debug/pprof/sy%6dbol?a=1%202&seconds=5 HTTP/1.1\r\nHost: localhost:1\r\n"
      "AUTHORIZATION:  Bearer x \r\nContent-Length: 3\r\n\r\n0x1";
  Parsed parsed = parse(bytes);
  ASSERT_EQ(parsed.result, HttpParse::complete);
  ASSERT_TRUE(decode_path(parsed.request));
  EXPECT_EQ(parsed.request.path, "/debug/pprof/symbol");
  EXPECT_EQ(parsed.request.host, "localhost:1");
  EXPECT_EQ(parsed.request.authorization, "Bearer x");
  EXPECT_EQ(parsed.request.body, "0x1");
  char text[32];
  EXPECT_TRUE(query_value(parsed.request.query, "seconds", text, sizeof text));
  EXPECT_STREQ(text, "5");
  EXPECT_TRUE(query_value(parsed.request.query, "a", text, sizeof text));
  EXPECT_STREQ(text, "1 2");
  EXPECT_FALSE(query_value(parsed.request.query, "second", text, sizeof text));
}

TEST(HttpRequest, EveryPrefixIsIncompleteAndNoneIsRead) {
  std::string whole =
      "GET /debug/pprof/heap?debug=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy";
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string bytes = whole.substr(0, size);
    EXPECT_EQ(parse(bytes).result, HttpParse::incomplete) << size;
  }
}

TEST(HttpRequest, RefusesWhatItDoesNotUnderstand) {
  struct Case {
    std::string bytes;
    int status;
  };
  const Case cases[] = {
      {"\x16\x03\x01\x02", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"GET http://x/ HTTP/1.1\r\n\r\n", 400},
      {"get / HTTP/1.1\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n folded: 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc", 400},
      {"GET /" + std::string(20'000, 'a'), 431},
  };
  for (const Case& item : cases) {
    std::string bytes = item.bytes;
    Parsed parsed = parse(bytes);
    EXPECT_EQ(parsed.result, HttpParse::bad) << item.bytes.substr(0, 60);
    EXPECT_EQ(parsed.status, item.status) << item.bytes.substr(0, 60);
  }
}

TEST(HttpRequest, ControlCharactersInThePathAreFound) {
  std::string bytes = "GET /a%0d%0ab HTTP/1.1\r\n\r\n";
  Parsed parsed = parse(bytes);
  ASSERT_EQ(parsed.result, HttpParse::complete);
  EXPECT_FALSE(decode_path(parsed.request));
}

TEST(Access, LoopbackAnswersItsOwnNamesOnly) {
  AccessRule rule;
  const char* sentence = nullptr;
  HttpRequest request;
  for (const char* host : {"localhost:8070", "127.0.0.1:8070", "[::1]:8070", ""}) {
    request.host = host;
    EXPECT_EQ(check_access(rule, request, sentence), 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example:80"}) {
    request.host = host;
    EXPECT_EQ(check_access(rule, request, sentence), 403) << host;
  }
}

TEST(Access, ATokenIsWantedWhereThereIsOne) {
  AccessRule rule;
  char sentence[128];
  ASSERT_TRUE(set_token(rule, "secret", sentence, sizeof sentence));
  const char* why = nullptr;
  HttpRequest request;
  EXPECT_EQ(check_access(rule, request, why), 401);
  request.authorization = "Bearer secret";
  EXPECT_EQ(check_access(rule, request, why), 200);
  for (const char* field : {"bearer secret", "BEARER  secret"}) {
    request.authorization = field;
    EXPECT_EQ(check_access(rule, request, why), 200) << field;
  }
  for (const char* field : {"Bearer", "Bearer ", "Bearersecret", "Basic secret"}) {
    request.authorization = field;
    EXPECT_EQ(check_access(rule, request, why), 401) << field;
  }
  request.authorization = "Bearer secrets";
  EXPECT_EQ(check_access(rule, request, why), 401);
  request.query = "seconds=1&token=secret";
  EXPECT_EQ(check_access(rule, request, why), 200);
  EXPECT_FALSE(set_token(rule, std::string(300, 'x').c_str(), sentence, sizeof sentence));
}

TEST(ListenAddress, BeyondLoopbackOnlyWithAToken) {
  char sentence[256];
  for (const char* address : {"0.0.0.0:0", ":0", "[::]:0"}) {
    Listener listener;
    EXPECT_NE(listen_at(address, false, listener, sentence, sizeof sentence), nullptr) << address;
    EXPECT_NE(std::string(sentence).find("token"), std::string::npos);
    EXPECT_EQ(listener.fd, -1);
  }
  for (const char* address : {"nonsense", "127.0.0.1:99999", "host.example:1", "unix:"}) {
    Listener listener;
    EXPECT_NE(listen_at(address, true, listener, sentence, sizeof sentence), nullptr) << address;
  }
  Listener listener;
  EXPECT_EQ(listen_at("0", false, listener, sentence, sizeof sentence), nullptr);
  EXPECT_GT(listener.port, 0);
  EXPECT_TRUE(listener.loopback);
}

}  // namespace
}  // namespace assay::inproc
