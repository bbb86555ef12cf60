// Heap profiles of programs whose allocations are counted exactly, and targets that must not
// notice.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/heap/injector.h"
#include "harness.h"
#include "os/procfs.h"

namespace assay::kernel_test {
namespace {

struct Amount {
  double objects = 0, bytes = 0, objects_error = 0, bytes_error = 0;
  bool leaks = false;
  int line = 0;
};
using Amounts = std::map<std::string, Amount>;

Amounts counted_by_program(const std::string& out) {
  Amounts amounts;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Amount amount;
    if (words >> name >> amount.objects >> amount.bytes) amounts[name] = amount;
  }
  return amounts;
}

// By function: a site is a line, and a function may have several.
Amounts estimated(const std::string& run_path) {
  Amounts amounts;
  nlohmann::json heap = report(run_path)["heap"];
  for (const nlohmann::json& site : heap["sites"]) {
    std::string name = site["function"];
    Amount& amount = amounts[name.substr(0, name.find('('))];
    amount.objects += site["allocated"]["objects"].get<double>();
    amount.bytes += site["allocated"]["bytes"].get<double>();
    amount.objects_error = std::hypot(amount.objects_error, site["allocated"]["objects_error"]);
    amount.bytes_error = std::hypot(amount.bytes_error, site["allocated"]["bytes_error"]);
    amount.leaks = amount.leaks || site["leaks"].get<bool>();
    amount.line = site.value("line", 0);
  }
  return amounts;
}

std::string why_not_attached() {
  return geteuid() == 0 ? "" : "skipped: needs root, to attach to another process";
}

// Sums are estimates: with 12 of them within 3.5 standard deviations, a right sampler fails once in
// 180 times; tried again, once in 30,000. (Errors are told as 1.96 standard deviations.)
constexpr double kDeviations = 3.5 / 1.96;

std::string disagreement(const Amounts& truth, const Amounts& got) {
  std::ostringstream text;
  for (const auto& [name, exact] : truth) {
    auto found = got.find(name);
    if (found == got.end()) {
      text << name << " is missing\n";
      continue;
    }
    const Amount& estimate = found->second;
    if (std::abs(estimate.objects - exact.objects) > kDeviations * estimate.objects_error + 1)
      text << name << ": " << estimate.objects << " objects of " << exact.objects << '\n';
    if (std::abs(estimate.bytes - exact.bytes) > kDeviations * estimate.bytes_error + 1)
      text << name << ": " << estimate.bytes << " bytes of " << exact.bytes << '\n';
  }
  return text.str();
}

TEST(Heap, PreloadedCountsAgreeWithTheProgramsOwn) {
  std::string wrong;
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::string path = run_file("planted");
    Finished done = run({assay(), "heap", "-q", "-o", path, "--rate", "64k", "--",
                         program("planted_heap"), "2500"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    Amounts truth = counted_by_program(done.out), got = estimated(path);
    ASSERT_EQ(truth.size(), 6u) << done.out;
    wrong = disagreement(truth, got);
    EXPECT_TRUE(got["leak_here"].leaks);
    EXPECT_GT(got["leak_here"].line, 0) << "named by its line";
    for (const auto& [name, amount] : got)
      EXPECT_TRUE(name == "leak_here" || !amount.leaks) << name << " does not leak";
    if (wrong.empty()) break;
  }
  EXPECT_EQ(wrong, "");
}

// The program runs for longer than the profile: shares are compared, in bytes.
TEST(Heap, AttachedSharesAgreeWithTheProgramsOwn) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  std::string wrong;
  for (int attempt = 0; attempt < 2; ++attempt) {
    Background target({program("planted_heap"), "5000"});
    ASSERT_NE(target.read_line().find("ready"), std::string::npos);
    std::string path = run_file("attached");
    Finished done = run({assay(), "heap", "-q", "-o", path, "--rate", "64k", "--for", "2500ms",
                         "--pid", std::to_string(target.pid())});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    Finished ended = target.wait();
    EXPECT_EQ(ended.exit_code, 0) << "the target ends as it would have";
    Amounts truth = counted_by_program(ended.out), got = estimated(path);
    double true_sum = 0, got_sum = 0;
    for (const auto& [name, amount] : truth) true_sum += amount.bytes;
    for (const auto& [name, amount] : truth) got_sum += got[name].bytes;
    wrong.clear();
    for (const auto& [name, amount] : truth) {
      double share = amount.bytes / true_sum, estimate = got[name].bytes / got_sum;
      // A share's own error, and as much again for that of the sum.
      if (std::abs(share - estimate) > 2 * kDeviations * got[name].bytes_error / got_sum + 0.002)
        wrong += name + ": " + std::to_string(estimate) + " of " + std::to_string(share) + "\n";
    }
    if (wrong.empty()) break;
  }
  EXPECT_EQ(wrong, "");
}

class AttachCycles : public testing::TestWithParam<const char*> {};

TEST_P(AttachCycles, LeaveTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  options.rate_bytes = 64 << 10;
  for (int cycle = 0; cycle < 8; ++cycle) {
    auto injected = capture::inject_sampler(target.pid(), options);
    ASSERT_TRUE(injected) << injected.error().text();
    EXPECT_TRUE(injected->channel->ready());
    injected->channel->start_sampling();
    usleep(5'000);
    auto removed = capture::remove_sampler(target.pid(), options.library);
    ASSERT_TRUE(removed) << removed.error().text();
  }
  usleep(100'000);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}
INSTANTIATE_TEST_SUITE_P(Heap, AttachCycles,
                         testing::Values("busy", "idle", "forking", "dlopening", "signals",
                                         "threads", "filtered"),
                         [](const auto& mode) { return mode.param; });

class Refusals : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  }
  static std::string refusal(pid_t pid) {
    Finished done = run({assay(), "heap", "-q", "-o", run_file("refused"), "--for", "1s", "--pid",
                         std::to_string(pid)},
                        30);
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_FALSE(done.err.find("try: ") == std::string::npos) << done.err;
    return done.err;
  }
};

TEST_F(Refusals, SayWhy) {
  Background fixed({program("static_sleeper")});
  fixed.read_line();
  EXPECT_NE(refusal(fixed.pid()).find("linked statically"), std::string::npos);
  Background own({program("own_malloc")});
  own.read_line();
  EXPECT_NE(refusal(own.pid()).find("its own malloc"), std::string::npos);
  Background stopped({"sleep", "60"});
  usleep(50'000);
  stopped.signal(SIGSTOP);
  usleep(50'000);
  EXPECT_NE(refusal(stopped.pid()).find("is stopped"), std::string::npos);
}

// A call that the filter does not know would end the target: it is asked first.
TEST_F(Refusals, OfWhatItsSeccompFilterForbids) {
  Background target({program("attach_target"), "strict"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string why = refusal(target.pid());
  EXPECT_NE(why.find("seccomp filter"), std::string::npos) << why;
  EXPECT_NE(why.find("memfd_create"), std::string::npos) << why;
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0);
}

TEST_F(Refusals, OfWhatIsTracedAlready) {
  Background target({"sleep", "60"});
  usleep(50'000);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr), 0);
  EXPECT_NE(refusal(target.pid()).find("traced already"), std::string::npos);
}

TEST_F(Refusals, OfAProgramThatCannotLoadTheSampler) {
  Finished done =
      run({assay(), "heap", "-q", "-o", run_file("static"), "--", program("static_sleeper")}, 30);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err.find("linked statically"), std::string::npos) << done.err;
}

TEST(Heap, ACommandsExitStatusIsPassedOnAlsoWhenNothingWasSampled) {
  for (const auto& [command, status] : {std::pair{"true", 0}, std::pair{"false", 1}}) {
    std::string path = run_file(std::string("ends-") + command);
    Finished done = run({assay(), "heap", "--rate", "64m", "-o", path, "--", command}, 30);
    EXPECT_EQ(done.exit_code, status) << done.err;
    EXPECT_NE(done.err.find("nothing was sampled"), std::string::npos) << done.err;
  }
}

TEST(Heap, ChildrenDoNotWaitForALoaderThatStayedInTheirParent) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "holding"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  // Longer than slots are looked at again, and with a sample in every child.
  Finished done = run({assay(), "heap", "-q", "--rate", "4k", "-o", run_file("holding"), "--for",
                       "2500ms", "--pid", std::to_string(target.pid())},
                      60);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

TEST(Heap, AKilledAssayLeavesATargetThatCanBeProfiledAgain) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("planted_heap"), "9000"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string pid = std::to_string(target.pid());
  {
    Background killed(
        {assay(), "heap", "-q", "-o", run_file("killed"), "--for", "60s", "--pid", pid});
    sleep(2);
    killed.signal(SIGKILL);
    killed.wait();
  }
  std::string path = run_file("again");
  Finished done = run({assay(), "heap", "-q", "-o", path, "--for", "1500ms", "--pid", pid}, 60);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_GT(estimated(path)["small_by_malloc"].bytes, 0);
  EXPECT_EQ(target.wait().exit_code, 0);
}

// Its guard may finish what it began after that: whoever comes then is not told to go away.
TEST(Heap, OneThatWasKilledWhileItAttachedIsNotInTheWay) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "busy"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string pid = std::to_string(target.pid());
  for (int i = 0; i < 6; ++i) {
    Background killed({assay(), "heap", "-q", "-o", run_file("early" + std::to_string(i)), "--for",
                       "60s", "--pid", pid});
    usleep(30'000 + i * 25'000);
    killed.signal(SIGKILL);
    killed.wait();
    Finished done = run({assay(), "heap", "-q", "-o", run_file("next" + std::to_string(i)), "--for",
                         "200ms", "--pid", pid},
                        60);
    EXPECT_EQ(done.exit_code, 0) << i << ": " << done.err;
  }
  target.signal(SIGTERM);
  EXPECT_EQ(target.wait().exit_code, 0);
}

// Until somebody traces the target's main thread; not for ever.
void wait_for_tracer(pid_t pid) {
  for (int look = 0; look < 10'000; ++look) {
    auto status = os::ProcFs().status(pid);
    if (!status || status->tracer != 0) return;
    usleep(20);
  }
}

// Threads that are scheduled before others: a held one is, until it is let go.
int favoured_threads(pid_t pid) {
  int count = 0;
  for (pid_t tid : os::ProcFs().tids(pid)) {
    errno = 0;
    count += getpriority(PRIO_PROCESS, static_cast<id_t>(tid)) < 0 && errno == 0 ? 1 : 0;
  }
  return count;
}

// Killed at any moment of attaching, Assay leaves a target that lives: what stands in it is put
// back by somebody who is not killed.
class KilledWhileAttaching : public testing::TestWithParam<const char*> {};

TEST_P(KilledWhileAttaching, LeavesTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  std::string pid = std::to_string(target.pid());
  unsigned random = 4711;
  constexpr int kKills = 60;
  for (int i = 0; i < kKills; ++i) {
    Background killed({assay(), "heap", "-q", "-o", run_file("killed" + std::to_string(i)), "--for",
                       "60s", "--pid", pid});
    random = random * 1664525 + 1013904223;
    if (i % 3 == 0 || std::string(GetParam()) == "threads") {
      usleep(2'000 + random % 60'000);  // starting, looking at the program, attaching, sampling
    } else {
      wait_for_tracer(target.pid());
      usleep(random % (i % 3 == 1 ? 2'000 : 20'000));  // a breakpoint, or a thread's calls
    }
    killed.signal(SIGKILL);
    killed.wait();
    ASSERT_EQ(kill(target.pid(), 0), 0) << "gone after " << i << " kills";
    ASSERT_NE(os::ProcFs().stat(target.pid())->state, 'Z') << "dead after " << i << " kills";
  }
  usleep(500'000);
  EXPECT_EQ(favoured_threads(target.pid()), 0);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}
INSTANTIATE_TEST_SUITE_P(Heap, KilledWhileAttaching, testing::Values("busy", "idle", "threads"),
                         [](const auto& mode) { return mode.param; });

char state_of(pid_t pid) {
  auto stat = os::ProcFs().stat(pid);
  return stat ? stat->state : '?';
}

// The process that attaches for us now: our child, and not the target. 0: it is gone already.
pid_t find_guard(pid_t target, const std::atomic<bool>& is_gone) {
  while (!is_gone) {
    std::string own = std::to_string(getpid());
    std::ifstream children("/proc/" + own + "/task/" + own + "/children");
    for (pid_t pid = 0; children >> pid;)
      if (pid != target) return pid;
    usleep(20);
  }
  return 0;
}

// Whoever traces a target may be killed, too: threads put themselves back.
class KilledGuard : public testing::TestWithParam<const char*> {};

TEST_P(KilledGuard, LeavesTheTargetUnharmed) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), GetParam()});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  unsigned random = 4711;
  int killed = 0;
  // On a busy machine many guards are done before the one who is to kill them gets a CPU.
  constexpr int kKills = 12, kTries = 80;
  for (int i = 0; i < kTries && killed < kKills; ++i) {
    random = random * 1664525 + 1013904223;
    constexpr useconds_t kLongest[] = {300, 1'500, 6'000};  // all of it takes about 2,000
    useconds_t delay = (random >> 8) % kLongest[i % 3];
    std::atomic<bool> is_gone = false;
    std::thread killer([&] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), -20);  // it has to be in time
      pid_t guard = find_guard(target.pid(), is_gone);
      usleep(delay);  // seizing, a breakpoint, a thread's calls, its release
      if (guard != 0) kill(guard, SIGKILL);
    });
    auto injected = capture::inject_sampler(target.pid(), options);
    is_gone = true;
    killer.join();
    if (!injected) ++killed;
    ASSERT_NE(state_of(target.pid()), 'Z') << "dead after " << i << " kills: " << target.wait().out;
    usleep(60'000);  // a sleep that began anew twice is no longer known by its own name
    if (injected) (void)capture::remove_sampler(target.pid(), options.library);
  }
  EXPECT_GT(killed, kKills / 3) << "guards are killed before they are done";
  auto injected = capture::inject_sampler(target.pid(), options);
  EXPECT_TRUE(injected) << "and it can still be attached to: " << injected.error().text();
  auto removed = capture::remove_sampler(target.pid(), options.library);
  EXPECT_TRUE(removed) << removed.error().text();
  usleep(200'000);
  EXPECT_EQ(favoured_threads(target.pid()), 0);
  target.signal(SIGTERM);
  Finished ended = target.wait();
  // epoll_wait answers a mere stop with EINTR, as after SIGSTOP and SIGCONT, until it is seen to.
  bool is_interrupted = ended.out.find("Interrupted system call") != std::string::npos;
  if (!is_interrupted || std::string(GetParam()) != "idle") {
    EXPECT_EQ(ended.exit_code, 0) << ended.out << killed << " killed";
  }
}
INSTANTIATE_TEST_SUITE_P(Heap, KilledGuard, testing::Values("busy", "idle", "threads"),
                         [](const auto& mode) { return mode.param; });

// A guard that still works when the next Assay comes is waited for.
TEST(Heap, AnAttachWaitsForTheGuardOfAnEarlierOne) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  Background target({program("attach_target"), "idle"});
  ASSERT_NE(target.read_line().find("ready"), std::string::npos);
  // A guard that holds the target for a while, as one under load does.
  pid_t guard = fork();
  if (guard == 0) {
    (void)capture::run_guarded([&](const capture::IsAbandoned&) -> Result<capture::GuardedResult> {
      ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr);
      usleep(700'000);
      return capture::GuardedResult{};
    });
    _exit(0);
  }
  wait_for_tracer(target.pid());
  capture::InjectOptions options;
  options.library = HEAP_LIBRARY;
  int waits = 0;
  options.on_wait = [&] { ++waits; };
  auto injected = capture::inject_sampler(target.pid(), options);
  EXPECT_TRUE(injected) << injected.error().text();
  EXPECT_EQ(waits, 1) << "told once";
  waitpid(guard, nullptr, 0);
  EXPECT_TRUE(capture::remove_sampler(target.pid(), options.library));
  target.signal(SIGTERM);
  Finished ended = target.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.out;
}

// Stopped (as by Ctrl-Z) at any moment of attaching: either that is said, or the sampler is in; the
// stop itself holds until somebody continues the target.
TEST(Heap, AStopWhileAttachingIsHeldAndHarmsNothing) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  for (const char* mode : {"busy", "idle", "threads"}) {
    Background target({program("attach_target"), mode});
    ASSERT_NE(target.read_line().find("ready"), std::string::npos);
    capture::InjectOptions options;
    options.library = HEAP_LIBRARY;
    unsigned random = 4711;
    int attached = 0;
    for (int i = 0; i < 25; ++i) {
      random = random * 1664525 + 1013904223;
      useconds_t delay = 500 + (random >> 8) % (i % 2 == 0 ? 15'000 : 80'000);
      std::thread stopper([&] {
        usleep(delay);
        target.signal(SIGSTOP);
      });
      auto injected = capture::inject_sampler(target.pid(), options);
      stopper.join();
      for (int wait = 0; wait < 200 && state_of(target.pid()) != 'T'; ++wait) usleep(1000);
      EXPECT_EQ(state_of(target.pid()), 'T') << mode << " " << i;
      target.signal(SIGCONT);
      if (!injected) {
        EXPECT_NE(injected.error().what.find("is stopped"), std::string::npos)
            << mode << " " << i << ": " << injected.error().text();
        continue;
      }
      ++attached;
      auto removed = capture::remove_sampler(target.pid(), options.library);
      ASSERT_TRUE(removed) << removed.error().text();
    }
    EXPECT_GT(attached, 0) << mode;
    target.signal(SIGTERM);
    Finished ended = target.wait();
    if (std::string(mode) != "idle") {  // whose sleeps a stop may well end early
      EXPECT_EQ(ended.exit_code, 0) << ended.out;
    }
  }
}

// Workers that are forked while their parent is sampled are sampled from their first allocation.
TEST(Heap, WorkersForkedAfterAttachingAreSampled) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  for (const char* command : {"heap", "record"}) {
    if (std::string(command) == "record" && !why_skipped().empty()) continue;
    Background target({program("attach_target"), "prefork"});
    ASSERT_NE(target.read_line().find("ready"), std::string::npos);
    std::string path = run_file(std::string("prefork-") + command);
    std::vector<std::string> argv{
        assay(), command, "-q", "-o", path, "--for", "4s", "--pid", std::to_string(target.pid())};
    if (argv[1] == "record") argv.push_back("--heap");
    Finished done = run(argv);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    auto processes = sql(path, "SELECT pid, count(*) AS n FROM heap GROUP BY pid");
    EXPECT_EQ(processes.size(), 3u) << command << ": the parent and two workers";
    for (const nlohmann::json& process : processes)
      EXPECT_GT(process["n"].get<int>(), 0) << command << " " << process.dump();
    target.signal(SIGTERM);
    Finished ended = target.wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.out;
  }
}

// Children that live for milliseconds: what they wrote is read when they are gone.
TEST(Heap, BriefChildrenOfAnAttachedProcessAreSampled) {
  if (std::string why = why_not_attached(); !why.empty()) GTEST_SKIP() << why;
  for (const char* command : {"heap", "record"}) {
    if (std::string(command) == "record" && !why_skipped().empty()) continue;
    Background target({program("attach_target"), "brief"});
    ASSERT_NE(target.read_line().find("ready"), std::string::npos);
    std::string path = run_file(std::string("brief-") + command);
    std::string pid = std::to_string(target.pid());
    std::vector<std::string> argv{assay(), command, "-q", "-o", path, "--for", "3s", "--pid", pid};
    if (argv[1] == "record") {
      argv.insert(argv.end(), {"--heap", "--heap-rate", "64k"});
    } else {
      argv.insert(argv.end(), {"--rate", "64k"});
    }
    Finished done = run(argv);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    target.signal(SIGTERM);
    Finished ended = target.wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.out;
    // 30 ms and a fork's time apart: some 90 in 3 s, fewer on a busy machine. All but those at the
    // ends of the window are there, and all that they allocated.
    auto children = sql(path, "SELECT count(DISTINCT pid) AS n FROM heap WHERE pid != " + pid);
    EXPECT_GT(children.at(0)["n"].get<int>(), 20) << command << " " << ended.out;
    Amounts got = estimated(path);
    ASSERT_TRUE(got.contains("allocate_briefly")) << command << ": named although they are gone";
    double per_child = got["allocate_briefly"].bytes / children.at(0)["n"].get<double>();
    EXPECT_NEAR(per_child / (4 << 20), 1, 0.15) << command;
  }
}

TEST(Heap, BesideTimeInOneRun) {
  static const std::string why = why_skipped();
  if (!why.empty()) GTEST_SKIP() << why;
  std::string path = run_file("together");
  Finished done =
      run({assay(), "record", "-q", "--heap", "-o", path, "--", program("planted_heap"), "2000"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_GT(sql(path, "SELECT count(*) AS n FROM waits").at(0)["n"].get<int>(), 10);
  EXPECT_GT(sql(path, "SELECT count(*) AS n FROM heap").at(0)["n"].get<int>(), 20);
  EXPECT_TRUE(estimated(path).contains("medium_by_new"));
}

}  // namespace
}  // namespace assay::kernel_test
