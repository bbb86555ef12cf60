// assay load against a server in the test: what is sent, what is printed, and the exit status.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/stop_signals.h"
#include "cli/testing/command_line.h"
#include "load/http1/fake_server.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Answers every request with one status line, and keeps what the first connection sent.
class LoadCommand : public CommandLine {
 protected:
  explicit LoadCommand(std::string status = "200 OK") : status_(std::move(status)) {}

  std::string status_;
  std::mutex mutex_;
  std::string received_;
  load::FakeServer server_{[this](int fd, int) {
    std::string bytes;
    while (server_.read_some(fd, bytes)) {
      std::lock_guard lock(mutex_);
      received_ = bytes;
      size_t head = bytes.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      size_t length = bytes.find("ontent-Length: "), body = 0;
      if (length != std::string::npos && length < head)
        body = std::stoul(bytes.substr(length + 15));
      if (bytes.size() < head + 4 + body) continue;
      bytes.clear();
      load::FakeServer::write_all(fd, "HTTP/1.1 " + status_ + "\r\nContent-Length: 2\r\n\r\nok");
    }
  }};

  Said load(std::vector<std::string> more, const std::string& route = "/") {
    std::vector<std::string> words{"load", server_.url(route), "-c", "1", "-n", "2", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  std::string received() {
    std::lock_guard lock(mutex_);
    return received_;
  }
};

class FailingServer : public LoadCommand {
 protected:
  FailingServer() : LoadCommand("500 Broken") {}
};

TEST_F(LoadCommand, CountsTheAnswers) {
  Said said = load({"--json"});
  EXPECT_EQ(said.code, 0) << said.err;
  auto json = nlohmann::json::parse(said.out);
  EXPECT_EQ(json.at("requests"), 2);
  EXPECT_EQ(json.at("errors"), 0);
  EXPECT_THAT(received(), HasSubstr("GET / HTTP/1.1\r\n"));
  EXPECT_THAT(load({}).out, HasSubstr("requests"));
}

TEST_F(LoadCommand, SendsTheBodyAsItWasGiven) {
  ASSERT_EQ(load({"--data", "a{{seq}}b"}).code, 0);
  EXPECT_THAT(received(), AllOf(HasSubstr("POST / "), HasSubstr("\r\n\r\na")));
  ASSERT_EQ(load({"--data-hex", "41 42\n0a"}).code, 0);
  EXPECT_THAT(received(), HasSubstr("\r\n\r\nAB\n"));
  std::string file = write("body", "of a {{seq}} file");
  ASSERT_EQ(load({"--data-file", file, "-X", "PUT"}).code, 0);
  EXPECT_THAT(received(), AllOf(HasSubstr("PUT / "), HasSubstr("of a {{seq}} file")))
      << "byte for byte";
  ASSERT_EQ(load({"--data", "@" + write("text", "from a file")}).code, 0);
  EXPECT_THAT(received(), HasSubstr("\r\n\r\nfrom a file"));
  ASSERT_EQ(load({"-H", "X-One: 1", "-H", "X-Two: 2"}).code, 0);
  EXPECT_THAT(received(), AllOf(HasSubstr("X-One: 1\r\n"), HasSubstr("X-Two: 2\r\n")));
}

TEST_F(FailingServer, IsAFailureWhenNoRequestSucceeded) {
  Said said = load({"--json"});
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(nlohmann::json::parse(said.out).at("errors"), 2);
}

TEST_F(LoadCommand, AProbeOfAServerThatAnswersSucceeds) {
  EXPECT_EQ(load({"--probe"}).code, 0);
}

TEST_F(FailingServer, AProbeTakesA5xxForAServerThatIsNotReadyYet) {
  EXPECT_EQ(load({"--probe"}).code, 1);
}

class RefusingServer : public LoadCommand {
 protected:
  RefusingServer() : LoadCommand("404 Not Found") {}
};

TEST_F(RefusingServer, AProbeSaysThatTheRequestIsWrong) {
  EXPECT_EQ(load({"--probe"}).code, 4);
}

TEST(LoadProbe, AServerThatIsNotThereIsNone) {
  EXPECT_EQ(assay({"load", "http://127.0.0.1:1/", "--probe"}).code, 1);
}

// The recorder reads these lines from the load process that it starts.
TEST_F(LoadCommand, TellsTheRecorderItsPlanAndItsTicks) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Said said = load({"--report-to", std::to_string(ends[1])});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "");
  ::close(ends[1]);
  std::string lines(65536, '\0');
  ssize_t got = ::read(ends[0], lines.data(), lines.size());
  lines.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  EXPECT_THAT(lines, ::testing::StartsWith("plan closed 1 1 0"));
  ::close(ends[0]);
}

TEST(StopSignals, TheFirstSetsTheFlag) {
  stop_requested() = false;
  install_stop_signals();
  ::raise(SIGTERM);
  EXPECT_TRUE(stop_requested());
  stop_requested() = false;
  ::signal(SIGHUP, SIG_IGN);
  install_stop_signals();
  ::raise(SIGHUP);
  EXPECT_FALSE(stop_requested()) << "nohup stays in force";
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
}

}  // namespace
}  // namespace assay::cli
