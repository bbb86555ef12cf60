#include "load/http1/http1_response.h"

#include <string>

#include <gtest/gtest.h>

namespace assay::load {
namespace {

using Step = Http1Response::Step;

struct Answer {
  Step step = Step::more;
  int status = 0;
  bool keep_alive = false;
  size_t left = 0;
  std::string fault;
};

// Feeds in pieces of `piece` bytes; `closes` ends the stream behind them.
Answer read(const std::string& text, size_t piece, bool closes = false, bool to_head = false) {
  Http1Response response;
  response.begin(to_head);
  Answer answer;
  size_t at = 0;
  while (at < text.size() && answer.step == Step::more) {
    std::string_view bytes = std::string_view(text).substr(at, piece);
    size_t given = bytes.size();
    answer.step = response.feed(bytes);
    at += given - bytes.size();
    EXPECT_TRUE(answer.step != Step::more || bytes.empty());
  }
  if (answer.step == Step::more && closes) answer.step = response.end_of_stream();
  answer.status = response.status();
  answer.keep_alive = response.keep_alive();
  answer.left = text.size() - at;
  answer.fault = response.fault();
  return answer;
}

// Whole, byte by byte, and in threes: the pieces must make no difference.
void expect_answer(const std::string& text, Step step, int status, bool keep_alive, size_t left = 0,
                   bool closes = false, bool to_head = false) {
  for (size_t piece : {text.size() + 1, size_t{1}, size_t{3}, size_t{17}}) {
    Answer answer = read(text, piece, closes, to_head);
    EXPECT_EQ(answer.step, step) << text << " in pieces of " << piece << ": " << answer.fault;
    if (step != Step::done) continue;
    EXPECT_EQ(answer.status, status) << text;
    EXPECT_EQ(answer.keep_alive, keep_alive) << text;
    EXPECT_EQ(answer.left, left) << text << " in pieces of " << piece;
  }
}

TEST(Http1Response, FixedLength) {
  expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Step::done, 200, true);
  expect_answer("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", Step::done, 404, true);
  expect_answer("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", Step::done, 200, true, 8);
  expect_answer("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", Step::done, 200, true);
  expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Step::more, 0, true);
}

TEST(Http1Response, Chunked) {
  std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect_answer(head + "5\r\nhello\r\n0\r\n\r\n", Step::done, 200, true);
  expect_answer(head + "A;name=value\r\n0123456789\r\n1\r\nx\r\n0\r\nTrailer: y\r\n\r\n",
                Step::done, 200, true);
  expect_answer(head + "0\r\n\r\nrest", Step::done, 200, true, 4);
  expect_answer(head + "\r\n", Step::bad, 0, true);
  expect_answer(head + "xyz\r\n", Step::bad, 0, true);
  expect_answer(head + "-1\r\n", Step::bad, 0, true);
  expect_answer(head + "2\r\nabc\r\n", Step::bad, 0, true);
  expect_answer(head + "11111111111111111\r\n", Step::bad, 0, true);
  expect_answer(head + "0\r\n" + std::string(70'000, 'x'), Step::bad, 0, true);
}

TEST(Http1Response, WithoutBody) {
  expect_answer("HTTP/1.1 204 No Content\r\n\r\n", Step::done, 204, true);
  expect_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", Step::done, 304, true);
  expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Step::done, 200, true, 0, false,
                true);
}

TEST(Http1Response, InterimAnswersArePassedOver) {
  expect_answer(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      Step::done, 200, true);
  expect_answer("HTTP/1.1 101 Switching Protocols\r\n\r\n", Step::bad, 0, true);
}

TEST(Http1Response, UntilClose) {
  expect_answer("HTTP/1.1 200 OK\r\n\r\nsome body", Step::done, 200, false, 0, true);
  expect_answer("HTTP/1.0 200 OK\r\n\r\n", Step::done, 200, false, 0, true);
  expect_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nbody", Step::done, 200, false, 0,
                true);
  expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Step::bad, 0, false, 0, true);
  expect_answer("HTTP/1.1 200 O", Step::bad, 0, false, 0, true);
}

TEST(Http1Response, KeepsAliveOrNot) {
  std::string length = "Content-Length: 0\r\n\r\n";
  expect_answer("HTTP/1.0 200 OK\r\n" + length, Step::done, 200, false);
  expect_answer("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + length, Step::done, 200, true);
  expect_answer("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n" + length, Step::done, 200, false);
}

TEST(Http1Response, Garbage) {
  for (const char* text : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
                           "\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 2000 x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: "
                           "x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    for (size_t piece : {size_t{1000}, size_t{1}}) {
      Answer answer = read(text, piece);
      EXPECT_EQ(answer.step, Step::bad) << text;
      EXPECT_NE(answer.fault, "") << text;
    }
  }
}

TEST(Http1Response, HugeHeads) {
  std::string fits =
      "HTTP/1.1 200 OK\r\nX: " + std::string(900'000, 'x') + "\r\nContent-Length: 1\r\n\r\ny";
  EXPECT_EQ(read(fits, 4096).step, Step::done);
  EXPECT_EQ(read(fits, fits.size()).step, Step::done);
  std::string endless = "HTTP/1.1 200 OK\r\nX: " + std::string(1'100'000, 'x');
  EXPECT_EQ(read(endless, 4096).step, Step::bad);
  EXPECT_EQ(read(endless + "\r\n\r\n", 4096).step, Step::bad);
  EXPECT_EQ(read(endless + "\r\n\r\n", 2'000'000).step, Step::bad);
}

}  // namespace
}  // namespace assay::load
