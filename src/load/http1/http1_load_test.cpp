// HTTP/1 load against correct and faulty servers: every request is counted correctly.
#include <gtest/gtest.h>

#include "load/http1/fake_server.h"
#include "load/generator.h"

namespace assay::load {
namespace {

LoadOptions options_for(const std::string& url) {
  LoadOptions options;
  options.url = url;
  options.connections = 2;
  options.requests_per_client = 3;
  options.duration_ns = 0;
  options.timeout_ns = 5 * kNsPerSecond;
  return options;
}

LoadResult run(const LoadOptions& options) {
  std::atomic<bool> stop{false};
  auto result = generate(options, stop, [](const Tick&) {});
  EXPECT_TRUE(result) << result.error().what;
  return result ? std::move(*result) : LoadResult{};
}

uint64_t count_of(const LoadResult& result, OutcomeKind kind) {
  uint64_t count = 0;
  for (const auto& [outcome, times] : result.total.errors) {
    if (outcome.kind == kind) count += times;
  }
  return count;
}

// A server that answers every request head with the same bytes, then closes or not.
class Canned {
 public:
  explicit Canned(std::string answer, bool closes = false)
      : answer_(std::move(answer)), closes_(closes), server_([this](int fd, int) { serve(fd); }) {}
  std::string url(const std::string& path = "/") const { return server_.url(path); }
  int connections() const { return server_.connections(); }
  std::vector<std::string> heads() {
    std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve(int fd) {
    std::string head;
    while (server_.read_request(fd, head)) {
      {
        std::lock_guard lock(mutex_);
        heads_.push_back(head);
      }
      head.clear();
      if (!FakeServer::write_all(fd, answer_) || closes_) return;
    }
  }
  std::string answer_;
  bool closes_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  FakeServer server_;
};

TEST(Http1Load, ClosedLoopSendsWhatWasAsked) {
  Canned server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  LoadOptions options = options_for(server.url("/a/{{seq}}"));
  options.headers = {"X-One: 1", "Authorization: Bearer t"};
  LoadResult result = run(options);
  EXPECT_EQ(result.total.ok, 6U);
  EXPECT_EQ(result.total.failed, 0U);
  EXPECT_EQ(result.total.latency.count(), 6U);
  EXPECT_GT(result.throughput(), 0);
  EXPECT_EQ(server.connections(), 3);  // two clients, and the check that the server is there
  auto heads = server.heads();
  ASSERT_EQ(heads.size(), 6U);
  std::set<std::string> paths;
  for (const std::string& head : heads) {
    EXPECT_TRUE(head.starts_with("GET /a/")) << head;
    EXPECT_NE(head.find("\r\nHost: 127.0.0.1:"), head.npos);
    EXPECT_NE(head.find("\r\nX-One: 1\r\n"), head.npos);
    paths.insert(head.substr(0, head.find(" HTTP")));
  }
  EXPECT_EQ(paths.size(), 6U);
}

TEST(Http1Load, ChunkedBodies) {
  Canned server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(run(options_for(server.url())).total.ok, 6U);
  EXPECT_EQ(server.connections(), 3);
}

TEST(Http1Load, ServersThatCloseAfterEachAnswer) {
  Canned http10("HTTP/1.0 200 OK\r\n\r\nbody until the end", true);
  LoadResult result = run(options_for(http10.url()));
  EXPECT_EQ(result.total.ok, 6U);
  EXPECT_EQ(result.total.failed, 0U);
  EXPECT_GE(result.total.connects, 6U);
  Canned close("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", true);
  EXPECT_EQ(run(options_for(close.url())).total.ok, 6U);
}

TEST(Http1Load, StatusesAreCountedByKind) {
  Canned storm("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
  LoadResult result = run(options_for(storm.url()));
  EXPECT_EQ(result.total.ok, 0U);
  EXPECT_EQ(count_of(result, OutcomeKind::status_5xx), 6U);
  EXPECT_EQ(result.total.errors.begin()->first.code, 503);
  EXPECT_EQ(result.total.latency.count(), 0U);
  Canned missing("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(count_of(run(options_for(missing.url())), OutcomeKind::status_4xx), 6U);
}

TEST(Http1Load, Garbage) {
  Canned server("SSH-2.0-OpenSSH_9.2p1\r\n");
  LoadResult result = run(options_for(server.url()));
  EXPECT_EQ(count_of(result, OutcomeKind::protocol), 6U);
  EXPECT_NE(result.total.first_protocol_fault, "");
}

TEST(Http1Load, HugeHeadersAreReadOrRefused) {
  std::string big(300'000, 'x');
  Canned fits("HTTP/1.1 200 OK\r\nX: " + big + "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(run(options_for(fits.url())).total.ok, 6U);
  Canned endless("HTTP/1.1 200 OK\r\nX: " + big + big + big + big +
                 "\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(count_of(run(options_for(endless.url())), OutcomeKind::protocol), 6U);
}

TEST(Http1Load, ClosedInTheMiddle) {
  Canned middle("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true);
  EXPECT_EQ(count_of(run(options_for(middle.url())), OutcomeKind::closed), 6U);
  Canned nothing("", true);
  EXPECT_EQ(count_of(run(options_for(nothing.url())), OutcomeKind::closed), 6U);
}

TEST(Http1Load, Resets) {
  FakeServer server([&](int fd, int) {
    char byte;
    ssize_t got = ::recv(fd, &byte, 1, 0);
    linger hard{1, 0};
    if (got > 0) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  });
  EXPECT_EQ(count_of(run(options_for(server.url())), OutcomeKind::reset), 6U);
}

TEST(Http1Load, AServerThatHangs) {
  FakeServer server([&](int fd, int) { server.wait_for_stop_or_close(fd); });
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 2;
  options.timeout_ns = 100 * kNsPerMs;
  LoadResult result = run(options);
  EXPECT_EQ(count_of(result, OutcomeKind::timeout), 4U);
  EXPECT_GE(result.total.latency.min_ns(), 100 * kNsPerMs);  // the time they waited
}

TEST(Http1Load, UnansweredRequestsAreNamed) {
  FakeServer server([&](int fd, int) { server.wait_for_stop_or_close(fd); });
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 0;
  options.duration_ns = 200 * kNsPerMs;
  LoadResult result = run(options);
  EXPECT_EQ(result.total.finished(), 0U);
  EXPECT_EQ(result.unanswered, 2U);
  EXPECT_GE(result.unanswered_oldest_ns, 100 * kNsPerMs);
}

TEST(Http1Load, NobodyThere) {
  int port = 0;
  {
    port = FakeServer([](int, int) {}).port();
  }
  LoadOptions options = options_for("http://127.0.0.1:" + std::to_string(port) + "/");
  std::atomic<bool> stop{false};
  auto result = generate(options, stop, [](const Tick&) {});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("Connection refused"), std::string::npos);
}

TEST(Http1Load, AServerThatGoesAwayMeanwhile) {
  auto server = std::make_unique<Canned>("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  LoadOptions options = options_for(server->url());
  options.requests_per_client = 0;
  options.duration_ns = 10 * kNsPerSecond;
  options.tick_ns = 50 * kNsPerMs;
  std::atomic<bool> stop{false};
  uint64_t refused = 0;
  auto result = generate(options, stop, [&](const Tick& tick) {
    if (tick.tally.ok > 0) server.reset();
    for (const auto& [outcome, count] : tick.tally.errors) {
      if (outcome.kind == OutcomeKind::connect) refused += count;
    }
    if (refused > 0) stop = true;
  });
  ASSERT_TRUE(result);
  EXPECT_GT(result->total.ok, 0U);
  EXPECT_GT(count_of(*result, OutcomeKind::connect), 0U);
}

// The server answers one request every 20 ms, on one connection; 100 a second are due. A generator
// that waited for answers would see 20 ms; counted from the time they were due, they wait longer
// and longer.
TEST(Http1Load, OpenLoopCountsFromWhenRequestsWereDue) {
  FakeServer server([&](int fd, int) {
    std::string head;
    while (server.read_request(fd, head)) {
      head.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!FakeServer::write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) return;
    }
  });
  LoadOptions options = options_for(server.url());
  options.connections = 1;
  options.requests_per_client = 0;
  options.duration_ns = kNsPerSecond;
  options.rate = 100;
  LoadResult result = run(options);
  EXPECT_LE(result.total.ok, 50U);
  EXPECT_GE(result.total.ok, 10U);
  // The n-th answer comes n × 20 ms in and was due n × 10 ms in, whatever the machine's load.
  EXPECT_GE(result.total.latency.max_ns(), 9 * kNsPerMs * static_cast<int64_t>(result.total.ok));
  EXPECT_GE(result.unsent, 100 - result.total.ok - 2);
  EXPECT_LE(result.unsent, 100 - result.total.ok);
}

TEST(Http1Load, OpenLoopKeepsItsPace) {
  Canned server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 0;
  options.duration_ns = 500 * kNsPerMs;
  options.rate = 200;
  LoadResult result = run(options);
  EXPECT_EQ(result.total.ok + result.unanswered + result.unsent, 100U);
  EXPECT_GE(result.total.ok, 90U);  // the last few may be under way when it ends
}

TEST(Http1Load, WarmupIsNotCounted) {
  Canned server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  LoadOptions options = options_for(server.url());
  options.requests_per_client = 0;
  options.rate = 200;
  options.duration_ns = 500 * kNsPerMs;
  options.warmup_ns = 500 * kNsPerMs;
  options.tick_ns = 250 * kNsPerMs;
  uint64_t all = 0;
  std::atomic<bool> stop{false};
  auto result = generate(options, stop, [&](const Tick& tick) { all += tick.tally.ok; });
  ASSERT_TRUE(result);
  EXPECT_LT(result->total.ok, all);
  EXPECT_NEAR(static_cast<double>(result->total.ok), 100, 40);  // a loaded machine ticks late
  EXPECT_NEAR(result->seconds(), 0.5, 0.2);
}

TEST(Http1Load, SeveralThreadsShareConnectionsAndNumbers) {
  Canned server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  LoadOptions options = options_for(server.url("/{{seq}}"));
  options.connections = 5;
  options.threads = 2;
  LoadResult result = run(options);
  EXPECT_EQ(result.total.ok, 15U);
  std::set<std::string> paths;
  for (const std::string& head : server.heads()) paths.insert(head.substr(0, head.find(" HTTP")));
  EXPECT_EQ(paths.size(), 15U);
}

TEST(Http1Load, BodiesAndMethods) {
  Canned server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  LoadOptions options = options_for(server.url());
  options.connections = 1;
  options.requests_per_client = 1;
  options.method = "PUT";
  options.data = R"({"n":{{seq}}})";
  run(options);
  std::string head = server.heads().at(0);
  EXPECT_TRUE(head.starts_with("PUT / HTTP/1.1\r\n"));
  EXPECT_NE(head.find("Content-Length: 7\r\n"), head.npos);
  EXPECT_NE(head.find("Content-Type: application/json\r\n"), head.npos);
}

TEST(LoadOptionsCheck, NonsenseIsRefused) {
  auto refused = [](auto change) {
    LoadOptions options = options_for("http://127.0.0.1:1/");
    change(options);
    return !check_options(options);
  };
  EXPECT_FALSE(refused([](LoadOptions&) {}));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.url = "nonsense"; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.connections = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.streams = 4; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.threads = 3; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.rate = -1; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.requests_per_client = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.data = o.raw = "x"; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.headers = {"nonsense"}; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.headers = {"A: b\r\nC: d"}; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.headers = {"Content-Length: 5"}; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.data = "{{nonsense}}"; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.method = "G ET"; }));
}

}  // namespace
}  // namespace assay::load
