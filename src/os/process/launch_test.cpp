#include "os/process/launch.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fake_tree.h"
#include "os/process/procfs.h"

namespace assay::os {
namespace {

// Long enough that only a hang, never a slow machine, reaches it.
constexpr int kHangSeconds = 60;

std::vector<std::string> shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST(Launch, RunsNothingBeforeRelease) {
  FakeTree tree;
  std::string mark = tree.root() + "/ran";
  auto launched = LaunchedProcess::start(shell("echo > " + mark));
  ASSERT_TRUE(launched) << launched.error().text();
  EXPECT_GT(launched->pid(), 0);
  EXPECT_EQ(ProcFs().stat(launched->pid())->parent, ::getpid());
  EXPECT_FALSE(launched->poll());
  EXPECT_FALSE(std::filesystem::exists(mark));
  ASSERT_TRUE(launched->release());
  EXPECT_EQ(launched->wait().exit_code(), 0);
  EXPECT_TRUE(std::filesystem::exists(mark));
}

TEST(Launch, KeepsThePidAcrossTheExec) {
  auto launched = LaunchedProcess::start({"sleep", "60"});
  ASSERT_TRUE(launched);
  ASSERT_TRUE(launched->release());
  EXPECT_EQ(*ProcFs().comm(launched->pid(), launched->pid()), "sleep");
  EXPECT_EQ(::getpgid(launched->pid()), launched->pid());
  EXPECT_EQ(launched->terminate(kNsPerSecond * kHangSeconds).exit_code(), 128 + SIGTERM);
}

TEST(Launch, PassesOnExitCodesAndSignals) {
  auto with_code = LaunchedProcess::start(shell("exit 7"));
  ASSERT_TRUE(with_code && with_code->release());
  ExitStatus seven = with_code->wait();
  EXPECT_FALSE(seven.signalled);
  EXPECT_EQ(seven.exit_code(), 7);
  EXPECT_EQ(with_code->poll()->exit_code(), 7);  // asked again: the same answer

  auto by_signal = LaunchedProcess::start(shell("kill -USR1 $$"));
  ASSERT_TRUE(by_signal && by_signal->release());
  ExitStatus killed = by_signal->wait();
  EXPECT_TRUE(killed.signalled);
  EXPECT_EQ(killed.exit_code(), 128 + SIGUSR1);
}

TEST(Launch, OutputGoesToStderrWhereThatIsAsked) {
  auto written = [](bool to_stderr) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    LaunchExtras extras;
    extras.output_to_stderr = to_stderr;
    auto launched = LaunchedProcess::start(shell("echo words"), extras);
    EXPECT_TRUE(launched && launched->release());
    if (launched) launched->wait();
    std::string out = testing::internal::GetCapturedStdout();
    return std::pair{out, testing::internal::GetCapturedStderr()};
  };
  EXPECT_EQ(written(false), std::pair(std::string("words\n"), std::string()));
  EXPECT_EQ(written(true), std::pair(std::string(), std::string("words\n")));
}

TEST(Launch, ReportsACommandThatIsNotThere) {
  auto launched = LaunchedProcess::start({"assay-no-such-command"});
  ASSERT_TRUE(launched);
  auto released = launched->release();
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, ENOENT);
  EXPECT_NE(released.error().what.find("command not found"), std::string::npos);
  EXPECT_EQ(launched->wait().exit_code(), 127);
}

TEST(Launch, ReportsAFileThatIsNotExecutable) {
  FakeTree tree;
  tree.write("plain", "text");
  auto launched = LaunchedProcess::start({tree.root() + "/plain"});
  ASSERT_TRUE(launched);
  auto released = launched->release();
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, EACCES);
  EXPECT_NE(released.error().remedy.find("chmod +x"), std::string::npos);
  EXPECT_EQ(launched->wait().exit_code(), 126);
}

TEST(Launch, AChildKilledBeforeReleaseIsAnError) {
  auto launched = LaunchedProcess::start({"sleep", "60"});
  ASSERT_TRUE(launched);
  ::kill(launched->pid(), SIGKILL);
  EXPECT_EQ(launched->wait().exit_code(), 128 + SIGKILL);
  EXPECT_FALSE(launched->release());
}

TEST(Launch, RefusesAnEmptyCommand) {
  EXPECT_FALSE(LaunchedProcess::start({}));
  EXPECT_FALSE(LaunchedProcess::start({""}));
}

TEST(Launch, DestroyedBeforeReleaseLeavesNoProcess) {
  pid_t pid = 0;
  {
    auto launched = LaunchedProcess::start({"sleep", "60"});
    ASSERT_TRUE(launched);
    pid = launched->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Launch, ChildEndsWhenAssayDiesBeforeRelease) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pid_t assay = ::fork();
  if (assay == 0) {
    auto launched = LaunchedProcess::start({"sleep", "60"});
    auto other = LaunchedProcess::start({"sleep", "60"});  // holds a copy of the first one's pipe
    pid_t pid = launched ? launched->pid() : 0;
    ssize_t count = ::write(ends[1], &pid, sizeof pid);
    ::kill(::getpid(), count == sizeof pid ? SIGKILL : SIGABRT);
  }
  ::close(ends[1]);
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::close(ends[0]);
  ASSERT_GT(child, 0);
  ::waitpid(assay, nullptr, 0);
  // Either gone, or a zombie that its new parent has not collected: in no case running.
  for (int tries = 0; tries < kHangSeconds * 100; ++tries) {
    auto stat = ProcFs().stat(child);
    if (!stat || stat->state == 'Z') return;
    ::usleep(10'000);
  }
  FAIL() << "the child lingers";
}

TEST(Launch, TerminateKillsWhatIgnoresIt) {
  FakeTree tree;
  std::string ready = tree.root() + "/ready";
  auto launched = LaunchedProcess::start(
      shell("trap '' TERM; echo > " + ready + "; while :; do sleep 60; done"));
  ASSERT_TRUE(launched && launched->release());
  while (!std::filesystem::exists(ready)) ::usleep(1000);
  EXPECT_EQ(launched->terminate(20 * kNsPerMs).exit_code(), 128 + SIGKILL);
}

TEST(Launch, SignalsAreAtTheirDefaultsInTheCommand) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  FakeTree tree;
  std::string out = tree.root() + "/status";
  auto launched = LaunchedProcess::start(shell("cat /proc/self/status > " + out));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, old_handler);
  ASSERT_TRUE(launched && launched->release());
  EXPECT_EQ(launched->wait().exit_code(), 0);
  std::ifstream in(out);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(text.find("SigBlk:\t0000000000000000"), std::string::npos) << text;
  // What was ignored around us (a shell's background job) stays ignored; what we ignore does not.
  size_t ignored = text.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos) << text;
  uint64_t mask = std::stoull(text.substr(ignored + 8, 16), nullptr, 16);
  EXPECT_EQ(mask >> (SIGPIPE - 1) & 1, 0u) << text;
}

// A session leader on a fresh terminal stands in for Assay run by hand.
TEST(Launch, ACommandThatReadsTheTerminalGetsIt) {
  int terminal = -1;
  pid_t assay = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(assay, 0);
  if (assay == 0) {
    ::alarm(kHangSeconds);
    auto launched = LaunchedProcess::start(shell("read line; test \"$line\" = hello"));
    if (!launched || !launched->release()) ::_exit(90);
    int code = launched->wait().exit_code();
    if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) ::_exit(91);
    ::_exit(code);
  }
  ASSERT_EQ(::write(terminal, "hello\n", 6), 6);
  int raw = 0;
  ::waitpid(assay, &raw, 0);
  ::close(terminal);
  ASSERT_TRUE(WIFEXITED(raw)) << raw;
  EXPECT_EQ(WEXITSTATUS(raw), 0);
}

}  // namespace
}  // namespace assay::os
