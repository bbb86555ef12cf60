// A CPU that is taken off and brought back during a capture is sampled again.
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness.h"

namespace assay::kernel_test {
namespace {

// Takes CPU 1 off, and has it back whatever happens.
class CpuOff {
 public:
  CpuOff() : works_(write("0")) {}
  ~CpuOff() { write("1"); }
  CpuOff(const CpuOff&) = delete;
  CpuOff& operator=(const CpuOff&) = delete;
  bool works() const { return works_; }

 private:
  static bool write(const char* text) {
    std::ofstream file("/sys/devices/system/cpu/cpu1/online");
    file << text << std::flush;
    return file.good();
  }
  bool works_;
};

// The thread that is there once events are on.
bool wait_for_consumer(pid_t pid) {
  for (int look = 0; look < 3000; ++look) {
    std::error_code gone;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
      std::string name;
      std::getline(std::ifstream(task.path() / "comm"), name);
      if (name == "assay-consumer") return true;
    }
    ::usleep(10'000);
  }
  return false;
}

void expect_all_time_is_there(const std::string& backend) {
  if (::access("/sys/devices/system/cpu/cpu1/online", W_OK) != 0)
    GTEST_SKIP() << "skipped: CPU 1 cannot be taken off here";
  std::string path = run_file("hotplug-" + backend);
  Background recording({assay(), "record", "-q", "--backend", backend, "-o", path, "--",
                        program("oversubscribed"), "--threads", "4", "--for", "5"});
  ASSERT_TRUE(wait_for_consumer(recording.pid()));
  ::usleep(500'000);
  {
    CpuOff off;
    if (!off.works()) GTEST_SKIP() << "skipped: CPU 1 cannot be taken off here";
    ::usleep(200'000);
  }
  Finished done = recording.wait();
  ASSERT_EQ(done.exit_code, 0);
  auto truths = parse_truths(done.out);
  ASSERT_FALSE(truths.empty());
  double truth = std::accumulate(truths.begin(), truths.end(), 0.0, [](double sum, const Truth& t) {
    return sum + static_cast<double>(t.cpu_ns);
  });
  double sampled = sql(path, "SELECT coalesce(sum(weight_ns), 0) AS n FROM samples").at(0)["n"];
  int64_t lost = sql(path, "SELECT coalesce(sum(count), 0) AS n FROM loss WHERE kind = 0 AND cpu = 1")
                     .at(0)["n"];
  int64_t notes = sql(path, "SELECT count(*) AS n FROM note WHERE topic = 'CPUs'").at(0)["n"];
  // Without the second CPU more than a third of the time after the first second would be missing.
  EXPECT_GT(sampled, 0.85 * truth) << "the CPU that came back is not sampled";
  EXPECT_GT(lost, 0) << "the moment until then is lost, and must be counted";
  EXPECT_LT(lost, 60) << "in samples of 10 ms";
  EXPECT_EQ(notes, 1) << "the run says so";
}

TEST(Hotplug, ACpuThatComesBackIsSampledByPerfEvents) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  expect_all_time_is_there("perf");
}

TEST(Hotplug, ACpuThatComesBackIsSampledByBpf) {
  if (std::string why = why_skipped(); !why.empty()) GTEST_SKIP() << why;
  Finished tried = run({assay(), "record", "-q", "--backend", "bpf", "-o", run_file("try"), "--", "true"});
  if (tried.exit_code != 0) GTEST_SKIP() << "skipped: " << tried.err;
  expect_all_time_is_there("bpf");
}

}  // namespace
}  // namespace assay::kernel_test
