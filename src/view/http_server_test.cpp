#include "view/http_server.h"

#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "analysis/testing/fake_run.h"
#include "view/html.h"

namespace assay::view {
namespace {

// A server on a free port of loopback with an empty run, until the test ends.
class Served {
 public:
  explicit Served(ServerOptions options = {}) : api_(runs()) {
    options.token = "0123456789abcdef0123456789abcdef";
    options.stop_on_signals = false;
    server_ = std::move(*HttpServer::start(
        options, [this](const Request& request) { return api_.handle(request); }));
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Served() {
    server_->stop();
    thread_.join();
  }

  int connect() const {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval patience{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  static std::string read_all(int fd) {
    std::string answer;
    char part[4096];
    for (ssize_t n; (n = ::read(fd, part, sizeof part)) > 0;)
      answer.append(part, static_cast<size_t>(n));
    ::close(fd);
    return answer;
  }

  std::string send(const std::string& text) const {
    int fd = connect();
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    return read_all(fd);
  }

  std::string host() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::string get(const std::string& target, const std::string& host) const {
    return send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
  std::string get(const std::string& target) const { return get("/" + token() + target, host()); }
  static std::string token() { return "0123456789abcdef0123456789abcdef"; }

 private:
  static std::vector<std::unique_ptr<OpeningRun>> runs() {
    std::vector<std::unique_ptr<OpeningRun>> list;
    list.push_back(std::make_unique<OpeningRun>(
        *RunIndex::make(std::make_unique<analysis::FakeRun>(), "/x/empty.assay")));
    return list;
  }
  Api api_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

// A page that asks for something else closes the connection; the work for it is told.
TEST(HttpServer, TellsTheHandlerThatTheAskerHasGone) {
  std::atomic<int> asked = 0, withdrawn = 0;
  ServerOptions options;
  options.token = "0123456789abcdef0123456789abcdef";
  options.stop_on_signals = false;
  auto server = std::move(*HttpServer::start(options, [&](const Request& request) {
    ++asked;
    for (int look = 0; look < 1'000 && !*request.gone; ++look) ::usleep(10'000);
    if (*request.gone) ++withdrawn;
    return Response{};
  }));
  std::thread thread([&] { server->run(); });
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::string text = "GET /" + options.token +
                     "/api/runs HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server->port()) +
                     "\r\n\r\n";
  ASSERT_EQ(::send(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  while (asked == 0) ::usleep(1'000);
  EXPECT_EQ(withdrawn, 0);
  ::close(fd);
  for (int look = 0; look < 500 && withdrawn == 0; ++look) ::usleep(10'000);
  EXPECT_EQ(withdrawn, 1);
  server->stop();
  thread.join();
}

TEST(AnswerCache, KeepsTheLastWithinItsRoom) {
  AnswerCache cache(1'000);
  for (int i = 0; i < 20; ++i) cache.keep("q" + std::to_string(i), std::string(100, 'a'));
  EXPECT_FALSE(cache.find("q0"));
  ASSERT_TRUE(cache.find("q19"));
  EXPECT_EQ(cache.find("q19")->size(), 100u);
  cache.keep("large", std::string(900, 'b'));
  EXPECT_FALSE(cache.find("large")) << "it would push out all others";
  EXPECT_TRUE(cache.find("q19"));
}

std::string status_of(const std::string& answer) {
  return answer.size() < 12 ? "none" : answer.substr(9, 3);
}

TEST(HttpServer, ServesThePageAndItsDataUnderTheToken) {
  Served served;
  std::string page = served.get("/");
  EXPECT_EQ(status_of(page), "200");
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
  EXPECT_NE(page.find("nosniff"), page.npos);
  EXPECT_EQ(status_of(served.get("/api/runs/0/meta")), "200");
  EXPECT_EQ(status_of(served.get("/api/runs/0/cells?from=0&to=5")), "200");
  EXPECT_EQ(status_of(served.get("/api/runs/0/heat?bins=0")), "400");
  EXPECT_EQ(status_of(served.get("/api/runs/1/meta")), "404");
}

TEST(HttpServer, RefusesAWrongToken) {
  Served served;
  EXPECT_EQ(status_of(served.get("/", served.host())), "403");
  EXPECT_EQ(status_of(served.get("/ffffffffffffffffffffffffffffffff/", served.host())), "403");
  EXPECT_EQ(status_of(served.get("/" + Served::token().substr(0, 31) + "/", served.host())), "403");
  EXPECT_EQ(status_of(served.get("/" + Served::token(), served.host())), "403");
  EXPECT_EQ(status_of(served.get("/api/runs", served.host())), "403");
}

TEST(HttpServer, RefusesAnotherHost) {
  Served served;
  std::string target = "/" + Served::token() + "/";
  EXPECT_EQ(status_of(served.get(target, "evil.example")), "421");
  EXPECT_EQ(status_of(served.get(target, "evil.example:" + served.host().substr(10))), "421");
  EXPECT_EQ(status_of(served.get(target, "127.0.0.1")), "421");
  EXPECT_EQ(status_of(served.get(target, "localhost:" + served.host().substr(10))), "200");
  EXPECT_EQ(status_of(served.send("GET " + target + " HTTP/1.1\r\nConnection: close\r\n\r\n")),
            "421");
}

TEST(HttpServer, OpensNoFileByAPath) {
  Served served;
  for (const char* path :
       {"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/runs/0/../../etc",
        "/api/runs/../meta", "/etc/passwd", "//etc/passwd", "/api/runs/0/", "/api/runs/-1/meta",
        "/api/runs/0x/meta"}) {
    EXPECT_EQ(status_of(served.get(path)), "404") << path;
  }
  EXPECT_EQ(status_of(served.get("/api/runs/0/source?file=%2Fetc%2Fpasswd")), "404");
}

TEST(HttpServer, RefusesWhatIsTooLargeOrNoRequest) {
  ServerOptions options;
  options.header_limit = 2000;
  options.body_limit = 1000;
  Served served(options);
  EXPECT_EQ(status_of(served.get("/?" + std::string(5000, 'a'))), "431");
  EXPECT_EQ(status_of(served.send("POST /" + Served::token() +
                                  "/api/runs/0/cells HTTP/1.1\r\nHost: " + served.host() +
                                  "\r\nContent-Length: 5000\r\n\r\n")),
            "413");
  EXPECT_EQ(status_of(served.send("\x16\x03\x01 hello\r\n\r\n")), "400");
  EXPECT_EQ(status_of(served.send("DELETE /" + Served::token() + "/ HTTP/1.1\r\nHost: " +
                                  served.host() + "\r\nConnection: close\r\n\r\n")),
            "405");
}

TEST(HttpServer, EndsSlowClients) {
  ServerOptions options;
  options.patience = std::chrono::milliseconds(200);
  Served served(options);
  int fd = served.connect();
  std::string half = "GET / HTTP/1.1\r\nHost: ";
  ASSERT_EQ(::send(fd, half.data(), half.size(), MSG_NOSIGNAL), static_cast<ssize_t>(half.size()));
  // Ends because the server closes; the socket's own patience is a hundred times longer.
  EXPECT_EQ(Served::read_all(fd), "");
}

TEST(HttpServer, BoundsConnections) {
  ServerOptions options;
  options.most_connections = 2;
  Served served(options);
  std::vector<int> kept;
  for (int i = 0; i < 2; ++i) {
    int fd = kept.emplace_back(served.connect());
    std::string text =
        "GET /" + Served::token() + "/ HTTP/1.1\r\nHost: " + served.host() + "\r\n\r\n";
    ASSERT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    char first = 0;
    ASSERT_EQ(::recv(fd, &first, 1, 0), 1) << "it was answered, and is kept open";
  }
  EXPECT_EQ(status_of(served.get("/")), "503");
  for (int fd : kept) ::close(fd);
  std::string answer;
  for (int attempt = 0; attempt < 100 && status_of(answer) != "200"; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    answer = served.get("/");
  }
  EXPECT_EQ(status_of(answer), "200");
}

// Anybody on this machine may connect. Who says nothing, or says it slowly, must not keep the owner
// of the page out, however many there are.
TEST(HttpServer, FiveHundredSilentConnectionsKeepNobodyOut) {
  ServerOptions options;
  options.stranger_patience = std::chrono::minutes(10);  // it is not time that helps
  options.patience = std::chrono::minutes(10);
  Served served(options);
  constexpr size_t kSilent = 500;
  std::vector<int> silent;
  for (size_t i = 0; i < kSilent; ++i) {
    silent.push_back(served.connect());
    if (i % 2 == 0) (void)!::send(silent.back(), "GET /slow", 9, MSG_NOSIGNAL);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(status_of(served.get("/")), "200") << i;
    silent.push_back(served.connect());
  }
  // Those that lost their places know it; the last ones still wait.
  size_t closed = 0;
  for (int fd : silent) {
    char byte = 0;
    ssize_t got = ::recv(fd, &byte, 1, MSG_DONTWAIT);
    bool waits = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    closed += waits ? 0 : 1;
    ::close(fd);
  }
  EXPECT_GE(closed, kSilent - options.most_strangers);
  EXPECT_LT(closed, silent.size());
}

TEST(HostMatches, OnlyTheBoundAddress) {
  EXPECT_TRUE(host_matches("127.0.0.1:80", "127.0.0.1", 80));
  EXPECT_TRUE(host_matches("localhost:80", "127.0.0.1", 80));
  EXPECT_TRUE(host_matches("[::1]:80", "::1", 80));
  EXPECT_TRUE(host_matches("10.1.2.3:80", "0.0.0.0", 80));
  EXPECT_FALSE(host_matches("rebound.example:80", "0.0.0.0", 80));
  EXPECT_FALSE(host_matches("localhost:80", "10.1.2.3", 80));
  EXPECT_FALSE(host_matches("127.0.0.1:81", "127.0.0.1", 80));
  EXPECT_FALSE(host_matches("", "127.0.0.1", 80));
  EXPECT_FALSE(host_matches(":80", "127.0.0.1", 80));
}

TEST(Token, IsLongAndNew) {
  auto one = new_token(), two = new_token();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->size(), 32u);
  EXPECT_NE(*one, *two);
}

TEST(Html, HoldsItsDataAndAsksNobody) {
  auto fake = std::make_unique<analysis::FakeRun>();
  auto thread =
      fake->add_thread(fake->add_process(1, "/bin/x"), 1, "</script><script>alert(1)</script>");
  fake->add_sample(thread, fake->stack({"main", "</script><img src=x onerror=alert(1)>"}), 10, 100);
  auto run = *RunIndex::make(std::move(fake), "/x/<b>.assay");
  auto report = run->report_json();
  ASSERT_TRUE(report);
  auto page = render_html(*run, run->reader(), *report);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->find("alert(1)"), page->npos);
  EXPECT_NE(page->find("connect-src 'none'"), page->npos);
  EXPECT_EQ(page->find("connect-src 'self'"), page->npos);
  EXPECT_NE(page->find("id=\"assay-data\">H4sI"), page->npos);
}

}  // namespace
}  // namespace assay::view
