// Who else uses the host, on a real kernel: programs over loopback, each with its own relation to
// the server that is recorded.
#include <gtest/gtest.h>

#include "harness.h"

namespace assay {
namespace {

using kernel_test::Background;

TEST(WhoElse, EachProgramIsMarkedByItsConnections) {
  if (auto why = kernel_test::why_not_attached(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string program = kernel_test::program("neighbours");
  Background helper({program, "helper"});
  Background server({program, "server", helper.read_line()});
  Background generator({program, "generator", server.read_line()});
  Background stranger({program, "stranger"});
  std::string path = kernel_test::run_file("who_else");
  auto recorded = kernel_test::run({kernel_test::assay(), "record", "--pid",
                                    std::to_string(server.pid()), "--for", "4s", "-o", path});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  nlohmann::json report = kernel_test::report(path);
  std::map<std::string, nlohmann::json> users;
  for (const auto& user : report["other_users"]) users[user["name"]] = user;
  const std::map<std::string, std::string> expected{
      {"t-helper", "connected"}, {"t-generator", "load_generator"}, {"t-stranger", "stranger"}};
  for (const auto& [name, relation] : expected) {
    ASSERT_TRUE(users.contains(name)) << name << " in " << report["other_users"].dump(1);
    EXPECT_EQ(users[name]["relation"], relation) << name;
    // They want a CPU all the time; how much of one they get is the machine's matter.
    EXPECT_GT(users[name]["cpus"], 0.02) << name;
  }
  EXPECT_FALSE(users.contains("t-server")) << "the target is nobody else";
  EXPECT_EQ(users["t-stranger"]["pid"], stranger.pid());
  EXPECT_GE(report["vitals"]["stranger_cpus"], users["t-stranger"]["cpus"]);
  EXPECT_GE(report["vitals"]["connected_cpus"], users["t-helper"]["cpus"]);
}

}  // namespace
}  // namespace assay
