#include "view/run_export.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "analysis/testing/fake_run.h"
#include "formats/format.h"
#include "view/run_index.h"

namespace assay::view {
namespace {

using analysis::FakeRun;
using ::testing::HasSubstr;

// Two processes with a thread of the same name, and a second thread in the first.
struct Fixture {
  std::unique_ptr<RunIndex> run;
  Fixture() {
    auto fake = std::make_unique<FakeRun>();
    fake->edit().info.window_end_ns = kNsPerSecond;
    auto first = fake->add_process(10, "/opt/server");
    auto second = fake->add_process(20, "/opt/other");
    auto one = fake->add_thread(first, 11, "worker.1");
    auto two = fake->add_thread(first, 12, "workerx1");
    auto three = fake->add_thread(second, 21, "worker.1");
    auto twin = fake->add_thread(second, 22, "worker.1");
    fake->add_sample(one, fake->stack({"main", "alpha"}), 100 * kNsPerMs, 10 * kNsPerMs);
    fake->add_sample(two, fake->stack({"main", "beta"}), 200 * kNsPerMs, 10 * kNsPerMs);
    fake->add_sample(three, fake->stack({"main", "gamma"}), 300 * kNsPerMs, 10 * kNsPerMs);
    fake->add_sample(twin, fake->stack({"main", "delta"}), 400 * kNsPerMs, 10 * kNsPerMs);
    run = *RunIndex::make(std::move(fake), "fake.assay");
  }
  Result<Exported> ask(Parameters parameters) const {
    parameters.try_emplace("format", "folded");
    return export_part(run->reader(), parameters);
  }
};

TEST(RunExport, TheWholeRunUnderTheFormatsSuffix) {
  Fixture fixture;
  auto all = fixture.ask({});
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->file_name, "assay.folded");
  for (const char* name : {"alpha", "beta", "gamma", "delta"})
    EXPECT_THAT(all->bytes, HasSubstr(name));
}

TEST(RunExport, OnlyTheChosenTimeAndThreads) {
  Fixture fixture;
  auto late = fixture.ask({{"from", "350000000"}});
  ASSERT_TRUE(late) << late.error().text();
  EXPECT_THAT(late->bytes, ::testing::Not(HasSubstr("gamma")));
  EXPECT_THAT(late->bytes, HasSubstr("delta"));
  // A dot of a name is a dot, and a thread of that name in another process is another thread.
  auto one = fixture.ask({{"threads", "0"}});
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_THAT(one->bytes, HasSubstr("alpha"));
  for (const char* name : {"beta", "gamma", "delta"})
    EXPECT_THAT(one->bytes, ::testing::Not(HasSubstr(name)));
  auto twins = fixture.ask({{"threads", "2,3"}});
  ASSERT_TRUE(twins) << twins.error().text();
  EXPECT_THAT(twins->bytes, HasSubstr("gamma"));
  EXPECT_THAT(twins->bytes, HasSubstr("delta"));
}

TEST(RunExport, ThreadsOfOneNameAreToldApart) {
  Fixture fixture;
  auto half = fixture.ask({{"threads", "2"}});
  ASSERT_TRUE(half) << half.error().text();
  EXPECT_THAT(half->bytes, HasSubstr("gamma"));
  EXPECT_THAT(half->bytes, ::testing::Not(HasSubstr("delta")));
  EXPECT_FALSE(fixture.ask({{"threads", ""}}));
  EXPECT_FALSE(fixture.ask({{"threads", "9"}}));
}

TEST(RunExport, UnknownFormatsAndThoseThatAreOnlyReadAreRefused) {
  Fixture fixture;
  for (const char* name : {"", "nonsense", "perf.data"})
    EXPECT_FALSE(fixture.ask({{"format", name}})) << name;
  EXPECT_FALSE(fixture.ask({{"metric", "nonsense"}}));
}

TEST(RunExport, TheMenuIsTheTable) {
  auto list = nlohmann::json::parse(formats_json());
  ASSERT_EQ(list.size(), formats::written_formats().size());
  for (size_t i = 0; i < list.size(); ++i) {
    const formats::FormatSpec& format = *formats::written_formats()[i];
    EXPECT_EQ(list[i]["name"], format.name);
    EXPECT_EQ(list[i]["suffix"], format.suffixes[0]);
    EXPECT_FALSE(list[i]["metrics"].empty());
    for (const auto& metric : list[i]["metrics"])
      EXPECT_TRUE(format.holds(*formats::parse_metric(metric.get<std::string>())));
  }
}

}  // namespace
}  // namespace assay::view
