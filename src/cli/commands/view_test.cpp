// assay view as a process of its own: the address that it prints, the page behind it, and its end.
#include <csignal>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "cli/testing/command_line.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ViewCommand : public CommandLine {
 protected:
  ~ViewCommand() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // Starts it, and gives the line that it prints.
  std::string start(std::vector<std::string> words) {
    int ends[2];
    if (::pipe(ends) != 0) return "";
    ::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      words.insert(words.begin(), {"assay", "view"});
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      ::_exit(run(static_cast<int>(words.size()), arguments.data()));
    }
    ::close(ends[1]);
    UniqueFd out(ends[0]);
    std::string line;
    for (char c = 0; ::read(out.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  // The beginning of the answer to a request for this path.
  static std::string ask(uint16_t port, const std::string& path) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return "no connection";
    std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", path, port);
    if (::write(socket.get(), request.data(), request.size()) < 0) return "not sent";
    std::string answer;
    char bytes[4096];
    for (ssize_t got = 0;
         answer.size() < 4000 && (got = ::read(socket.get(), bytes, sizeof bytes)) > 0;)
      answer.append(bytes, static_cast<size_t>(got));
    return answer;
  }
  int ended_with() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t pid_ = 0;
};

TEST_F(ViewCommand, ServesThePageUntilItIsInterrupted) {
  std::string url = start({usual_run(), "--no-browser"});
  constexpr std::string_view kBegin = "http://127.0.0.1:";
  ASSERT_THAT(url, StartsWith(std::string(kBegin)));
  size_t slash = url.find('/', kBegin.size());
  ASSERT_NE(slash, std::string::npos);
  auto port = static_cast<uint16_t>(std::stoi(url.substr(kBegin.size())));
  EXPECT_GT(url.size() - slash, 20u) << "a token that cannot be guessed";
  EXPECT_THAT(ask(port, url.substr(slash, url.find('#') - slash)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(port, "/"), Not(HasSubstr("HTTP/1.1 200"))) << "without the token";
  ::kill(pid_, SIGINT);
  EXPECT_EQ(ended_with(), 0);
}

TEST_F(ViewCommand, ASelectionIsPartOfTheAddress) {
  std::string url = start({usual_run(), "--no-browser", "--time", "0s..1s"});
  EXPECT_THAT(url, HasSubstr("#"));
  EXPECT_THAT(url.substr(url.find('#')), HasSubstr("to=")) << url;
}

}  // namespace
}  // namespace assay::cli
