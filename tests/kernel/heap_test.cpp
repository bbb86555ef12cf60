// Heap profiles of programs whose allocations are counted exactly.
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
#include "os/process/procfs.h"

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

// Sums are estimates: with 12 of them within 3.5 standard deviations, a right sampler fails once in
// 180 times; tried again, once in 30,000. (Errors are given as 1.96 standard deviations.)
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

// A call that the filter forbids would end the target: the filter is checked first.
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

// Children that live for milliseconds: their records are read after they have ended.
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
