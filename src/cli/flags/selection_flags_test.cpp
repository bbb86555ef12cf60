#include "cli/flags/selection_flags.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

Result<run::Selection> parsed(std::vector<std::string> words, bool stacks = false) {
  CLI::App app;
  SelectionFlags flags;
  flags.add_to(app);
  if (stacks) flags.add_stacks_to(app);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return flags.selection();
}

TEST(SelectionFlags, WithoutFlagsItIsTheWholeRun) {
  EXPECT_TRUE(parsed({})->is_whole());
}

TEST(SelectionFlags, SayWhatTheTextFormSays) {
  auto selection = parsed({"--pid", "10", "11", "--tid", "12", "--pool", "io-*", "--process",
                           "worker 0", "--thread", "^w", "--time", "2s..2500ms"});
  ASSERT_TRUE(selection);
  EXPECT_EQ(*selection, *run::parse_selection("pid=10,11&tid=12&pool=io-*&process=worker+0&"
                                              "thread=%5Ew&from=2000000000&to=2500000000"));
}

TEST(SelectionFlags, FromAndToAreTheSameTime) {
  auto one = parsed({"--from", "1s", "--to", "3s", "--focus", "f", "--no-idle"}, true);
  ASSERT_TRUE(one);
  EXPECT_EQ(*one, *run::parse_selection("from=1000000000&to=3000000000&focus=f&idle=0"));
  EXPECT_EQ(parsed({"--time", "1s..3s"})->from_ns, one->from_ns);
  EXPECT_FALSE(parsed({"--time", "1s..3s", "--to", "3s"}, true));
}

TEST(SelectionFlags, RefusesWhatIsNoTime) {
  for (const char* text : {"2s", "..", "x..3s", "2s..y", "-1s..", "5s-6s"}) {
    EXPECT_FALSE(parsed({std::string("--time=") + text})) << text;
  }
}

TEST(SelectionFlags, ReportsAreOfTheWholeWindow) {
  run::Selection selection;
  selection.pids = {5};
  EXPECT_TRUE(refuse_time(selection));
  selection.to_ns = 5;
  EXPECT_FALSE(refuse_time(selection));
}

}  // namespace
}  // namespace assay::cli
