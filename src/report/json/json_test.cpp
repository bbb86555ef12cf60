#include "report/json/json.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/sample_report.h"
#include "report/json/schema_check.h"

namespace assay::report {
namespace {

using nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

TEST(Json, ThreadsHaveExactlyTheirFieldsAndAddUp) {
  json report = json::parse(render_json(analysed(sample_run())));
  EXPECT_EQ(report["schema_version"], 1);
  ASSERT_EQ(report["threads"].size(), 4u);
  for (const json& thread : report["threads"]) {
    EXPECT_EQ(keys(thread),
              (std::set<std::string>{"pid", "tid", "name", "pool", "role", "wall_ns", "user_ns",
                                     "kernel_ns", "runqueue_ns", "blocked_ns", "idle_ns"}));
    int64_t sum = thread["user_ns"].get<int64_t>() + thread["kernel_ns"].get<int64_t>() +
                  thread["runqueue_ns"].get<int64_t>() + thread["idle_ns"].get<int64_t>();
    for (const json& ns : thread["blocked_ns"]) sum += ns.get<int64_t>();
    EXPECT_EQ(sum, thread["wall_ns"]);
  }
}

TEST(Json, CarriesTheReport) {
  json report = json::parse(render_json(analysed(sample_run())));
  EXPECT_EQ(report["workload"]["target"], "--port 8000");
  EXPECT_EQ(report["workload"]["window_ns"], 2'000'000'000);
  EXPECT_EQ(report["quality"]["samples"], 165);
  EXPECT_EQ(report["quality"]["lost"], 12);
  EXPECT_EQ(report["quality"]["lost_by_kind"]["ring_records"], 12);
  EXPECT_EQ(report["functions"][0]["function"], "_int_malloc");
  EXPECT_EQ(report["functions"][0]["self_samples"], 70);
  EXPECT_EQ(report["waits"][0]["kind"], "lock");
  EXPECT_EQ(report["waits"][0]["count"], 240);
  EXPECT_EQ(report["facts"]["host"]["kernel"], "6.18.1");
  EXPECT_EQ(report["hot_paths"][0]["frames"].back()["function"], "clone3");
  EXPECT_EQ(report["processes"][0]["pools"].size(), 2u);
  EXPECT_EQ(report["accelerators"][0]["name"], "Example GPU");
  EXPECT_NEAR(report["accelerators"][0]["busy_share"], 0.412, 1e-9);
  EXPECT_EQ(report["accelerators"][0]["power_limit_w"], 300);
  EXPECT_TRUE(report["accelerators"][0]["temperature_c"].is_null());
}

void expect_units(const json& at) {
  for (const auto& [key, value] : at.items()) {
    if (key.ends_with("_ns") && !value.is_object() && !value.is_null()) {
      EXPECT_TRUE(value.is_number_integer()) << key;
    }
    bool is_share = (key.ends_with("_share") || key == "share") && key != "sampled_share";
    if (is_share && !value.is_null()) {  // null: not known
      EXPECT_GE(value.get<double>(), 0) << key;
      EXPECT_LE(value.get<double>(), 1) << key;
    }
    if (value.is_structured()) expect_units(value);
  }
}

TEST(Json, SharesAreSharesAndTimesAreIntegers) {
  expect_units(json::parse(render_json(analysed(sample_run()))));
}

TEST(Json, HostileNamesAndEmptyRunsAreValidJson) {
  std::string text = render_json(analysed(hostile_run()));
  json report = json::parse(text);
  EXPECT_EQ(report["functions"].size(), 4u);  // the fake reads one name's "|" as an inlined call
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  analysis::FakeRun empty;
  empty.edit() = {};
  EXPECT_EQ(json::parse(render_json(analysed(empty)))["threads"].size(), 0u);
}

json schema() {
  std::ifstream in(std::filesystem::path(SOURCE_ROOT) / "docs" / "report.schema.json");
  EXPECT_TRUE(in);
  return json::parse(in);
}

TEST(Json, KeepsItsSchema) {
  json rules = schema();
  SchemaCheck check(rules);
  analysis::FakeRun empty;
  empty.edit() = {};
  for (const analysis::FakeRun& run : {sample_run(), hostile_run(), empty, imported_heap_run()}) {
    EXPECT_EQ(check.violation(json::parse(render_json(analysed(run)))), "");
  }
}

TEST(Json, CountsThatAreNoTimeAreNotThreadTime) {
  json report = json::parse(render_json(analysed(imported_counts_run())));
  EXPECT_EQ(SchemaCheck(schema()).violation(report), "");
  EXPECT_EQ(report["thread_time"]["wall_ns"], 0);
  EXPECT_EQ(report["threads"][0]["wall_ns"], 0);
  EXPECT_TRUE(report["findings"].empty());
  EXPECT_EQ(report["facts"]["import"]["unit"], "goroutine");
}

TEST(Json, TheSchemaCatchesMistakes) {
  json rules = schema();
  SchemaCheck check(rules);
  json good = json::parse(render_json(analysed(sample_run())));
  for (const char* change : {R"([{"op":"remove","path":"/quality/hz"}])",
                             R"([{"op":"add","path":"/threads/0/more","value":1}])",
                             R"([{"op":"replace","path":"/threads/0/wall_ns","value":0.5}])",
                             R"([{"op":"replace","path":"/waits/0/kind","value":"magic"}])",
                             R"([{"op":"replace","path":"/functions/0/self_share","value":1.5}])",
                             R"([{"op":"add","path":"/thread_time/blocked_ns/nap","value":1}])",
                             R"([{"op":"replace","path":"/schema_version","value":2}])"}) {
    EXPECT_NE(check.violation(good.patch(json::parse(change))), "") << change;
  }
}

TEST(Json, TheSameRunGivesTheSameBytes) {
  EXPECT_EQ(render_json(analysed(sample_run())), render_json(analysed(sample_run())));
}

}  // namespace
}  // namespace assay::report
