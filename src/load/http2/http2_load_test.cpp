// HTTP/2 and gRPC load against correct and faulty servers.
#include <set>

#include <gtest/gtest.h>

#include "load/http2/fake_http2_server.h"
#include "load/generator.h"

namespace assay::load {
namespace {

LoadOptions options_for(const std::string& url) {
  LoadOptions options;
  options.url = url;
  options.http2 = url.starts_with("http");
  options.connections = 2;
  options.streams = 3;
  options.requests_per_client = 5;
  options.duration_ns = 0;
  options.timeout_ns = 5 * kNsPerSecond;
  return options;
}
constexpr uint64_t kAll = 2 * 3 * 5;

LoadResult run(const LoadOptions& options) {
  std::atomic<bool> stop{false};
  auto result = generate(options, stop, [](const Tick&) {});
  EXPECT_TRUE(result) << result.error().what;
  return result ? std::move(*result) : LoadResult{};
}

std::string errors_of(const LoadResult& result) {
  std::string text;
  for (const auto& [outcome, times] : result.total.errors) {
    text += fmt::format("{} × {} ", times, describe(outcome));
  }
  return text;
}

uint64_t count_of(const LoadResult& result, OutcomeKind kind, int code = -1) {
  uint64_t count = 0;
  for (const auto& [outcome, times] : result.total.errors) {
    if (outcome.kind == kind && (code < 0 || outcome.code == code)) count += times;
  }
  return count;
}

FakeAnswer grpc_answer(const std::string& body, const std::string& status = "0") {
  FakeAnswer answer;
  answer.body = body;
  answer.grpc_status = status;
  return answer;
}

TEST(Http2Load, ClosedLoopOverStreams) {
  std::mutex mutex;
  std::set<std::string> paths;
  std::set<std::string> bodies;
  FakeHttp2Server server([&](int, const std::string& path, const std::string& body) {
    std::lock_guard lock(mutex);
    paths.insert(path);
    bodies.insert(body);
    FakeAnswer answer;
    answer.body = std::string(20'000, 'x');
    return answer;
  });
  LoadOptions options = options_for(server.url("/p/{{seq}}"));
  options.data = "n={{seq}}" + std::string(40'000, 'y');
  LoadResult result = run(options);
  EXPECT_EQ(result.total.ok, kAll);
  EXPECT_EQ(result.total.failed, 0U) << errors_of(result);
  EXPECT_EQ(paths.size(), kAll);
  EXPECT_EQ(bodies.size(), kAll);
  EXPECT_EQ(bodies.begin()->size(), std::string("n=0").size() + 40'000);
  EXPECT_EQ(server.connections(), 3);  // two, and the check that the server is there
}

TEST(Http2Load, Statuses) {
  FakeHttp2Server server([](int, const std::string&, const std::string&) {
    FakeAnswer answer;
    answer.status = "503";
    return answer;
  });
  EXPECT_EQ(count_of(run(options_for(server.url())), OutcomeKind::status_5xx, 503), kAll);
}

TEST(Http2Load, StreamResetsAreNamedByCode) {
  FakeHttp2Server server([](int, const std::string&, const std::string&) {
    FakeAnswer answer;
    answer.reset = NGHTTP2_INTERNAL_ERROR;
    return answer;
  });
  LoadResult result = run(options_for(server.url()));
  EXPECT_EQ(count_of(result, OutcomeKind::stream_reset, NGHTTP2_INTERNAL_ERROR), kAll);
}

TEST(Http2Load, RequestsThatGoawayLeftUnseenAreSentAgain) {
  FakeHttp2Server server([](int number, const std::string&, const std::string&) {
    FakeAnswer answer;
    answer.goaway_before = number == 4 || number == 11;
    return answer;
  });
  LoadResult result = run(options_for(server.url()));
  EXPECT_EQ(result.total.ok, kAll);
  EXPECT_EQ(result.total.failed, 0U) << errors_of(result);
  EXPECT_GE(result.total.retried, 2U);
  EXPECT_GT(result.total.connects, 2U);
}

TEST(Http2Load, AServerThatWantsNewConnections) {
  FakeHttp2Server server([](int number, const std::string&, const std::string&) {
    FakeAnswer answer;
    answer.goaway_after = number % 7 == 6;
    return answer;
  });
  LoadResult result = run(options_for(server.url()));
  EXPECT_EQ(result.total.ok, kAll);
  EXPECT_EQ(result.total.failed, 0U) << errors_of(result);
}

TEST(Http2Load, StreamsThatHangTimeOutAlone) {
  FakeHttp2Server server([](int, const std::string& path, const std::string&) {
    FakeAnswer answer;
    answer.silent = path == "/3";
    return answer;
  });
  LoadOptions options = options_for(server.url("/{{seq}}"));
  options.timeout_ns = 200 * kNsPerMs;
  LoadResult result = run(options);
  EXPECT_EQ(count_of(result, OutcomeKind::timeout), 1U);
  EXPECT_EQ(result.total.ok, kAll - 1);
}

TEST(Http2Load, AServerThatSpeaksHttp1) {
  FakeServer server([&](int fd, int) {
    std::string head;
    if (server.read_request(fd, head)) {
      FakeServer::write_all(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    }
  });
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 2;
  LoadResult result = run(options);
  EXPECT_EQ(result.total.ok, 0U);
  EXPECT_EQ(result.total.failed, 2U * 3 * 2);
  EXPECT_EQ(count_of(result, OutcomeKind::protocol), 2U * 3 * 2);
}

TEST(Http2Load, ConnectionsThatEnd) {
  FakeServer server([&](int fd, int) {
    std::string bytes;
    server.read_some(fd, bytes);
  });
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 2;
  LoadResult result = run(options);
  EXPECT_EQ(count_of(result, OutcomeKind::closed) + count_of(result, OutcomeKind::reset),
            2U * 3 * 2);
}

TEST(GrpcLoad, UnaryAndStreaming) {
  FakeHttp2Server server([](int, const std::string& path, const std::string& body) {
    EXPECT_EQ(body, grpc_frame("abc"));
    std::string one = grpc_frame("reply");
    return grpc_answer(path == "/a.S/Many" ? one + one + one : one);
  });
  LoadOptions options = options_for(server.grpc_url("/a.S/One"));
  options.raw = "abc";
  LoadResult one = run(options);
  EXPECT_EQ(one.total.ok, kAll);
  EXPECT_EQ(one.total.messages, kAll);
  options.url = server.grpc_url("/a.S/Many");
  EXPECT_EQ(run(options).total.messages, 3 * kAll);
}

TEST(GrpcLoad, StatusesAndMalformedAnswers) {
  FakeHttp2Server server([](int, const std::string& path, const std::string&) {
    if (path == "/a.S/Unavailable") return grpc_answer("", "14");
    if (path == "/a.S/Silent") return grpc_answer(grpc_frame("x"), "");
    if (path == "/a.S/Cut") return grpc_answer(grpc_frame("hello").substr(0, 7));
    FakeAnswer missing;
    missing.status = "404";
    return missing;
  });
  auto load = [&](const char* method) { return run(options_for(server.grpc_url(method))); };
  EXPECT_EQ(count_of(load("/a.S/Unavailable"), OutcomeKind::grpc_status, 14), kAll);
  EXPECT_EQ(count_of(load("/a.S/Silent"), OutcomeKind::protocol), kAll);
  EXPECT_EQ(count_of(load("/a.S/Cut"), OutcomeKind::protocol), kAll);
  EXPECT_EQ(count_of(load("/a.S/Missing"), OutcomeKind::status_4xx, 404), kAll);
}

}  // namespace
}  // namespace assay::load
