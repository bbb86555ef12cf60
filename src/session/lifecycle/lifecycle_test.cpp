#include "session/lifecycle/lifecycle.h"

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/temporary_directory.h"

namespace assay::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool lives(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

// Notes which steps were taken, and does in each what a test wants.
class FakeCapture final : public CaptureSteps {
 public:
  Result<void> prepare() override { return step("prepare"); }
  Result<void> open() override { return step("open"); }
  Result<TimeNs> begin() override {
    auto done = step("begin");
    if (!done) return std::unexpected(done.error());
    began_at = monotonic_ns();
    if (on_begin) on_begin();
    return began_at;
  }
  std::optional<EndReason> poll(TimeNs) override {
    ++polls;
    return on_poll ? on_poll() : std::nullopt;
  }
  TimeNs wake_by() const override { return wake_at; }
  void end(EndReason reason) override {
    steps.push_back("end " + std::string(end_reason_text(reason)));
  }
  void finish(EndReason) override {
    steps.push_back("finish");
    if (on_finish) on_finish();
  }

  std::vector<std::string> steps;
  std::string fails;  // the step that does
  std::function<void()> on_begin, on_finish;
  std::function<std::optional<EndReason>()> on_poll;
  TimeNs wake_at = INT64_MAX, began_at = 0;
  int polls = 0;

 private:
  Result<void> step(const std::string& name) {
    steps.push_back(name);
    if (name == fails) return fail("{} failed", name);
    return {};
  }
};

class LifecycleTest : public ::testing::Test {
 protected:
  LifecycleTest() {
    plan_.target.target.command = {"/bin/sleep", "600"};
    plan_.target.stop_launched = true;
    plan_.tick_ns = kNsPerMs;
  }
  Result<EndReason> run() {
    life_ = std::make_unique<Lifecycle>(plan_, stop_, proc_);
    return life_->run(capture_);
  }
  pid_t launched() { return life_->target().pids().front(); }

  os::ProcFs proc_;
  std::atomic<bool> stop_{false};
  Lifecycle::Plan plan_;
  FakeCapture capture_;
  std::unique_ptr<Lifecycle> life_;
};

TEST_F(LifecycleTest, StepsFollowOneAnotherUntilTheTimeIsOver) {
  plan_.duration_ns = 20 * kNsPerMs;
  pid_t pid = 0;
  bool lived = false, lives_at_finish = true;
  capture_.on_begin = [&] { lived = lives(pid = launched()); };
  capture_.on_finish = [&] { lives_at_finish = lives(pid); };
  auto ended = run();
  ASSERT_TRUE(ended) << ended.error().what;
  EXPECT_EQ(*ended, EndReason::time);
  EXPECT_THAT(capture_.steps, ElementsAre("prepare", "open", "begin", "end time", "finish"));
  EXPECT_GE(monotonic_ns() - capture_.began_at, plan_.duration_ns);
  EXPECT_GT(capture_.polls, 1);
  EXPECT_TRUE(lived);
  EXPECT_FALSE(lives_at_finish) << "it was asked to end with the capture";
  EXPECT_FALSE(life_->target().launched_exit()) << "our doing is not how it ended";
}

TEST_F(LifecycleTest, AStopEndsItAndTheCommandWithIt) {
  plan_.target.stop_launched = false;
  capture_.on_poll = [&]() -> std::optional<EndReason> {
    if (capture_.polls == 3) stop_ = true;
    return std::nullopt;
  };
  auto ended = run();
  ASSERT_TRUE(ended) << ended.error().what;
  EXPECT_EQ(*ended, EndReason::interrupted);
  EXPECT_EQ(capture_.polls, 3);
  ASSERT_TRUE(life_->target().launched_exit());
  EXPECT_TRUE(life_->target().launched_exit()->signalled);
}

TEST_F(LifecycleTest, TheCaptureMaySayWhyItMustEnd) {
  capture_.on_poll = [] { return std::optional(EndReason::write_failed); };
  auto ended = run();
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, EndReason::write_failed);
  EXPECT_THAT(capture_.steps,
              ElementsAre("prepare", "open", "begin", "end write failed", "finish"));
}

TEST_F(LifecycleTest, AFailedStepIsTheLast) {
  for (const char* step : {"prepare", "open", "begin"}) {
    capture_ = {};
    capture_.fails = step;
    auto ended = run();
    ASSERT_FALSE(ended) << step;
    EXPECT_EQ(ended.error().what, std::string(step) + " failed");
    EXPECT_EQ(capture_.steps.back(), step);
    EXPECT_EQ(capture_.polls, 0);
    pid_t held = life_->target().is_launched() ? launched() : 0;
    EXPECT_EQ(held != 0, std::string(step) != "prepare") << "nothing is launched in vain";
    life_.reset();
    EXPECT_FALSE(held != 0 && lives(held)) << "a held command ends with its launcher";
  }
}

TEST_F(LifecycleTest, ALaunchedCommandIsHeldUntilItIsReleasedAndItsEndIsSeenAtOnce) {
  TemporaryDirectory dir;
  std::string file = dir / "ran";
  plan_.target.target.command = {"/bin/sh", "-c", "echo ran > '" + file + "'; exit 3"};
  plan_.tick_ns = 600 * kNsPerSecond;  // not waited for: the command's end cuts it short
  bool ran_before = true;
  capture_.on_begin = [&] {
    usleep(20'000);
    ran_before = std::filesystem::exists(file);
    EXPECT_TRUE(life_->target().release());
  };
  capture_.on_poll = [&] {
    return life_->target().launched_has_ended() ? std::optional(EndReason::target_exited)
                                                : std::nullopt;
  };
  auto ended = run();
  ASSERT_TRUE(ended) << ended.error().what;
  EXPECT_EQ(*ended, EndReason::target_exited);
  EXPECT_FALSE(ran_before);
  EXPECT_TRUE(std::filesystem::exists(file));
  ASSERT_TRUE(life_->target().launched_exit());
  EXPECT_EQ(life_->target().launched_exit()->exit_code(), 3);
}

TEST_F(LifecycleTest, ACaptureIsPolledWhenItAskedToBe) {
  plan_.tick_ns = 600 * kNsPerSecond;
  capture_.on_begin = [&] { capture_.wake_at = capture_.began_at + 5 * kNsPerMs; };
  capture_.on_poll = [&] {
    return monotonic_ns() >= capture_.wake_at ? std::optional(EndReason::time) : std::nullopt;
  };
  ASSERT_TRUE(run());
  EXPECT_EQ(capture_.polls, 2) << "at once, and when it was due";
}

TEST_F(LifecycleTest, ATargetThatRanBeforeIsNeverSignalled) {
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  plan_.target.target.command.clear();
  plan_.target.target.pids = {child};
  plan_.target.warmup_ns = kNsPerMs;
  capture_.on_poll = [&]() -> std::optional<EndReason> {
    stop_ = true;
    return std::nullopt;
  };
  auto ended = run();
  EXPECT_TRUE(ended) << ended.error().what;
  EXPECT_THAT(life_->target().pids(), ElementsAre(child));
  EXPECT_TRUE(life_->target().attached());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it lives";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(LifecycleTest, ATargetThatIsNotThereNamesTheCommandToTryAgain) {
  plan_.target.target.command.clear();
  plan_.target.target.pids = {0x7ffffff0};
  auto ended = run();
  ASSERT_FALSE(ended);
  EXPECT_THAT(capture_.steps, ElementsAre("prepare"));
}

// A command that the capture must see come up runs from the start.
class ComingUp : public LifecycleTest {
 protected:
  Result<EndReason> run_until(std::function<bool()> is_up) {
    life_ = std::make_unique<Lifecycle>(plan_, stop_, proc_);
    life_->target().set_launch_plan({.is_up = std::move(is_up), .why_not_up = [this](NotUp why) {
                                       why_ = why;
                                       return Error{"not up", "", 0};
                                     }});
    return life_->run(capture_);
  }
  std::optional<NotUp> why_;
};

TEST_F(ComingUp, ItIsThenLikeATargetThatRanBefore) {
  int asked = 0;
  plan_.duration_ns = kNsPerMs;
  auto ended = run_until([&] { return ++asked == 3; });
  ASSERT_TRUE(ended) << ended.error().what;
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(life_->target().attached());
  EXPECT_EQ(life_->target().resolved().pids(), life_->target().pids());
  EXPECT_LE(life_->target().launched_at(), capture_.began_at);
}

TEST_F(ComingUp, OneThatEndsBeforeIsAnError) {
  plan_.target.target.command = {"/bin/true"};
  ASSERT_FALSE(run_until([] { return false; }));
  EXPECT_EQ(why_, NotUp::ended);
  EXPECT_FALSE(life_->target().ended_unseen());
  EXPECT_THAT(capture_.steps, ElementsAre("prepare"));
}

TEST_F(ComingUp, AStopEndsTheWaitAndTheCommand) {
  stop_ = true;
  ASSERT_FALSE(run_until([] { return false; }));
  EXPECT_EQ(why_, NotUp::interrupted);
}

TEST_F(ComingUp, OneThatCameUpAndEndedAtOnceWasNotSeen) {
  plan_.target.target.command = {"/bin/true"};
  ASSERT_FALSE(run_until([&] { return life_->target().launched_has_ended(); }));
  EXPECT_FALSE(why_) << "it had come up";
  EXPECT_TRUE(life_->target().ended_unseen());
  EXPECT_EQ(life_->target().launched_exit()->exit_code(), 0);
}

}  // namespace
}  // namespace assay::session
