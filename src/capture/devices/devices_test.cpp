#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "capture/counters/recording_sink.h"
#include "capture/devices/accelerator_counters.h"
#include "capture/devices/device_server.h"
#include "os/fake_tree.h"

namespace assay::capture {
namespace {

using model::SeriesScope;
using testing::ElementsAre;
using testing::HasSubstr;

DeviceReader::Options options(const std::string& behaviour = "") {
  if (behaviour.empty()) {
    ::unsetenv("FAKE_NVML");
  } else {
    ::setenv("FAKE_NVML", behaviour.c_str(), 1);
  }
  return {DEVICE_HOST, {kDevicesWord, FAKE_NVML_LIBRARY}, 20 * kNsPerSecond};
}

// Asks, and looks again and again, as the poller does.
std::optional<DeviceAnswer> ask(DeviceReader& reader) {
  reader.ask(monotonic_ns());
  for (int tries = 0; tries < 3000 && reader.problem().empty(); ++tries) {
    if (auto answer = reader.take(monotonic_ns())) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

TEST(DeviceReading, GoesThereAndBack) {
  DeviceAnswer answer{"", 42, {{"nvidia0", "One", 970, 5, 10, 693'000, {}, 1, {}, {{7, 8}}}, {}}};
  auto read = answer_in(to_message(answer));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->time, 42);
  ASSERT_EQ(read->devices.size(), 2u);
  EXPECT_EQ(read->devices[0].device, "nvidia0");
  EXPECT_EQ(read->devices[0].busy_milli, 970);
  EXPECT_EQ(read->devices[0].power_limit_mw, std::nullopt);
  EXPECT_THAT(*read->devices[0].pids, ElementsAre(7, 8));
  EXPECT_FALSE(read->devices[1].pids);
}

TEST(DeviceReading, NonsenseIsNoAnswer) {
  std::string whole = to_message({"", 42, {{"nvidia0", "One", {}, {}, {}, {}, {}, {}, {}, {}}}});
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(answer_in(whole.substr(0, length))) << length;
  EXPECT_FALSE(answer_in(whole + "x"));
}

TEST(DeviceReader, HasTheNumbersOfTheLibrary) {
  DeviceReader reader(options());
  auto answer = ask(reader);
  ASSERT_TRUE(answer) << reader.problem();
  ASSERT_EQ(answer->devices.size(), 2u);
  const DeviceReading& first = answer->devices[0];
  EXPECT_EQ(first.device, "nvidia3") << "by its minor number, as /dev has it";
  EXPECT_EQ(first.busy_milli, 970);
  EXPECT_EQ(first.memory_used, 600);
  EXPECT_EQ(first.memory_total, 1000);
  EXPECT_EQ(first.power_mw, 693'000);
  EXPECT_EQ(first.power_limit_mw, 700'000);
  EXPECT_EQ(first.throttled, 1);
  EXPECT_EQ(first.temperature_c, 61);
  EXPECT_THAT(*first.pids, ElementsAre(7));
  EXPECT_EQ(answer->devices[1].busy_milli, std::nullopt) << "it does not say";
  EXPECT_EQ(answer->devices[1].throttled, 0) << "idle is not held down";
}

TEST(DeviceReader, TheLibraryRunsWithoutRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  DeviceReader reader(options());
  auto answer = ask(reader);
  ASSERT_TRUE(answer) << reader.problem();
  EXPECT_EQ(answer->devices[0].name, "First of user 65534");
}

TEST(DeviceReader, ALibraryThatCrashesIsAProblemAndNoMore) {
  DeviceReader reader(options("crash"));
  EXPECT_FALSE(ask(reader));
  EXPECT_THAT(reader.problem(), HasSubstr("Aborted"));
  EXPECT_FALSE(ask(reader)) << "it is not started again";
}

TEST(DeviceReader, ALibraryThatHangsIsGivenUpAndNobodyWaits) {
  DeviceReader reader(options("hang"));
  TimeNs began = 1;
  reader.ask(began);
  EXPECT_TRUE(reader.pid());
  EXPECT_FALSE(reader.take(began + 10 * kNsPerSecond));
  EXPECT_EQ(reader.problem(), "");
  EXPECT_FALSE(reader.take(began + 21 * kNsPerSecond));
  EXPECT_EQ(reader.problem(), "no answer in time");
  EXPECT_FALSE(reader.pid()) << "the process is ended";
}

TEST(DeviceReader, ADriverThatIsNotThereIsSaid) {
  DeviceReader reader(options("refuse"));
  ask(reader);
  EXPECT_THAT(reader.problem(), HasSubstr("Driver Not Loaded"));
}

TEST(DeviceReader, AProgramThatIsNotThereIsSaid) {
  DeviceReader reader({"/does/not/exist", {}, kNsPerSecond});
  EXPECT_FALSE(ask(reader));
  EXPECT_NE(reader.problem(), "");
}

class FakeTarget : public testing::Test {
 protected:
  FakeTarget() {
    os::add_process(tree, {.pid = 7, .comm = "srv"});
    tasks = {{{model::ProcessId{1}, 7}}, {{model::ThreadId{10}, 7, 7}}};
  }
  void poll(AcceleratorCounters& counters) {
    owners.poll(tasks);
    counters.poll(tasks);
  }
  // Until the first answer is there.
  void poll_until_read(AcceleratorCounters& counters) {
    for (int tries = 0; tries < 3000 && sink.series().empty() && sink.notes().empty(); ++tries) {
      poll(counters);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  AcceleratorCounters::Parts parts(DeviceReader::Options reader, bool always = false) {
    return {owners, book, monotonic_ns, std::move(reader), always};
  }
  std::string fact(const std::string& scope, const std::string& key) const {
    for (const model::Fact& one : sink.facts())
      if (one.scope == scope && one.key == key) return one.value;
    return "";
  }

  os::FakeTree tree;
  os::ProcFs proc{tree.root()};
  SocketOwners owners{proc};
  RecordingSink sink;
  std::atomic<uint32_t> next{1};
  SeriesBook book{sink, next};
  LiveTasks tasks;
};

TEST_F(FakeTarget, WithoutADeviceNothingIsStarted) {
  tree.link("7/fd/3", "/dev/null");
  AcceleratorCounters counters(parts({"/does/not/exist", {}, kNsPerSecond}));
  for (int i = 0; i < 3; ++i) poll(counters);
  EXPECT_TRUE(sink.notes().empty()) << "it would fail if it were started";
  EXPECT_TRUE(sink.facts().empty());
}

TEST_F(FakeTarget, ItsDeviceIsReadAndTheOtherIsNotItsOwn) {
  tree.link("7/fd/3", "/dev/nvidia3");
  AcceleratorCounters counters(parts(options()));
  poll_until_read(counters);
  EXPECT_EQ(sink.values(SeriesScope::host, 0, "accelerator_busy", "nvidia3").front(), 970);
  EXPECT_EQ(sink.values(SeriesScope::host, 0, "accelerator_power", "nvidia3").front(), 693'000);
  EXPECT_EQ(sink.values(SeriesScope::host, 0, "accelerator_memory", "nvidia3").front(), 600);
  EXPECT_EQ(sink.values(SeriesScope::host, 0, "accelerator_throttled", "nvidia3").front(), 1);
  EXPECT_EQ(sink.values(SeriesScope::host, 0, "accelerator_temperature", "nvidia3").front(), 61);
  EXPECT_TRUE(sink.values(SeriesScope::host, 0, "accelerator_busy", "nvidia7").empty());
  EXPECT_EQ(fact("accelerator nvidia3", "used_by_target"), "yes");
  EXPECT_EQ(fact("accelerator nvidia3", "power_limit_w"), "700.0");
  EXPECT_EQ(fact("accelerator nvidia7", "used_by_target"), "no");
}

// In another process namespace the library's numbers are not ours.
TEST_F(FakeTarget, WhereTheLibraryListsNobodyOpenFilesTell) {
  tree.link("7/fd/3", "/dev/nvidia7");
  AcceleratorCounters counters(parts(options()));
  poll_until_read(counters);
  EXPECT_EQ(fact("accelerator nvidia7", "used_by_target"), "yes");
}

TEST_F(FakeTarget, ADeviceOfAnotherVendorIsNamed) {
  tree.link("7/fd/3", "/dev/dri/renderD128");
  AcceleratorCounters counters(parts({"/does/not/exist", {}, kNsPerSecond}));
  poll(counters);
  EXPECT_EQ(fact("accelerator dri/renderD128", "used_by_target"), "yes");
  EXPECT_TRUE(sink.notes().empty());
}

TEST_F(FakeTarget, AProblemIsNotedOnce) {
  tree.link("7/fd/3", "/dev/nvidia3");
  AcceleratorCounters counters(parts(options("refuse")));
  poll_until_read(counters);
  for (int i = 0; i < 3; ++i) poll(counters);
  ASSERT_EQ(sink.notes().size(), 1u);
  EXPECT_THAT(sink.notes()[0].text, HasSubstr("Driver Not Loaded"));
}

}  // namespace
}  // namespace assay::capture
