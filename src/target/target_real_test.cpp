// resolve() against real processes, started here and on loopback only.
#include <filesystem>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "os/fake_tree.h"
#include "os/process/launch.h"
#include "target/target.h"

namespace assay::target {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGraceNs = 10 * kNsPerSecond;

Result<ResolvedTarget> run(const TargetSpec& spec) {
  return resolve(spec, os::ProcFs(), {.self = ::getpid()});
}

// A copy of sleep under a name that nothing else on the machine has.
class RealProgram : public testing::Test {
 protected:
  RealProgram() : name_("assay-t" + std::to_string(::getpid())), path_(tree_.root() + "/" + name_) {
    std::filesystem::copy_file("/bin/sleep", path_);
  }
  os::LaunchedProcess start() {
    auto launched = os::LaunchedProcess::start({path_, "300"});
    EXPECT_TRUE(launched && launched->release());
    return std::move(*launched);
  }
  os::FakeTree tree_;
  std::string name_, path_;
};

TEST_F(RealProgram, IsFoundByPidNameAndFile) {
  os::LaunchedProcess server = start();
  for (const TargetSpec& spec :
       {TargetSpec{.pids = {server.pid()}}, TargetSpec{.name = name_}, TargetSpec{.exe = path_}}) {
    auto found = run(spec);
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_THAT(found->pids(), ElementsAre(server.pid()));
    EXPECT_EQ(found->main().exe, path_);
    EXPECT_EQ(found->main().role, "main");
    EXPECT_EQ(found->main().parent, ::getpid());
    EXPECT_EQ(found->main().uid, ::geteuid());
    EXPECT_EQ(found->main().cmdline, path_ + " 300");
    EXPECT_EQ(found->main().threads.size(), 1u);
    EXPECT_FALSE(found->main().exe_deleted);
  }
  std::filesystem::remove(path_);
  auto deleted = run({.exe = path_});
  ASSERT_TRUE(deleted) << deleted.error().text();
  EXPECT_TRUE(deleted->main().exe_deleted);

  server.terminate(kGraceNs);
  auto dead = run({.pids = {server.pid()}});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, ESRCH);
}

TEST_F(RealProgram, TwoOfThemAreAChoice) {
  os::LaunchedProcess one = start(), two = start();
  auto found = run({.name = name_});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr(fmt::format("pid {}", one.pid())));
  EXPECT_THAT(found.error().what, HasSubstr(fmt::format("pid {}", two.pid())));
  EXPECT_THAT(found.error().remedy, HasSubstr(fmt::format("--pid {}", one.pid())));
  one.terminate(kGraceNs);
  two.terminate(kGraceNs);
}

UniqueFd listener(uint16_t port, bool share) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int on = 1;
  if (share) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return UniqueFd();
  if (::listen(fd.get(), 8) != 0) return UniqueFd();
  return fd;
}

uint16_t port_of(const UniqueFd& fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

struct Family {
  pid_t parent = 0;
  pid_t children[2] = {};
  uint16_t port = 0;
};

// A server of three processes in a group of its own: prefork (one socket, inherited), or one socket
// per child (SO_REUSEPORT) and none in the parent.
Family start_family(bool prefork) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  pid_t parent = ::fork();
  if (parent != 0) {
    ::close(ends[1]);
    Family family;
    if (::read(ends[0], &family, sizeof family) != static_cast<ssize_t>(sizeof family)) return {};
    ::close(ends[0]);
    family.parent = parent;
    return family;
  }
  ::setpgid(0, 0);
  ::alarm(120);  // never outlives a crashed test for long
  Family family;
  UniqueFd own = listener(0, !prefork);
  family.port = port_of(own);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) ::_exit(1);
  for (pid_t& child : family.children) {
    child = ::fork();
    if (child != 0) continue;
    ::alarm(120);
    UniqueFd mine;
    if (!prefork) {
      mine = listener(family.port, true);
      own.reset();
    }
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte[1];
  for (int child = 0; child < 2; ++child) {
    if (::read(ready[0], byte, 1) != 1) ::_exit(1);
  }
  if (!prefork) own.reset();
  if (::write(ends[1], &family, sizeof family) != static_cast<ssize_t>(sizeof family)) ::_exit(1);
  for (;;) ::pause();
}

void stop(const Family& family) {
  ::kill(-family.parent, SIGKILL);
  ::waitpid(family.parent, nullptr, 0);
}

TEST(RealPort, APreforkServerIsOneTree) {
  Family family = start_family(true);
  ASSERT_NE(family.parent, 0);
  auto found = run({.port = family.port});
  stop(family);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(found->pids(), ElementsAre(family.parent, family.children[0], family.children[1]));
  EXPECT_EQ(found->main().role, "main");
  EXPECT_EQ(found->processes[1].role, "worker 0");
  EXPECT_EQ(found->processes[2].role, "worker 1");
}

TEST(RealPort, SocketsSharedByReusePortAreOneServer) {
  Family family = start_family(false);
  ASSERT_NE(family.parent, 0);
  auto found = run({.port = family.port});
  stop(family);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(found->pids(), ElementsAre(family.children[0], family.children[1]));
  EXPECT_EQ(found->processes[0].role, "worker 0");
}

TEST(RealPort, NobodyListens) {
  uint16_t port = port_of(listener(0, false));  // free again at once
  auto found = run({.port = port});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().what, HasSubstr("nothing listens"));
}

}  // namespace
}  // namespace assay::target
