#include "run/selection/selection.h"

#include <random>

#include <gtest/gtest.h>

#include "run/selection/chosen_threads.h"

namespace assay::run {
namespace {

Selection everything() {
  Selection selection;
  selection.pids = {10, 11};
  selection.tids = {12};
  selection.pools = {"worker-*", "a,b", "c\\", ""};
  selection.processes = {"worker 0", "server [main]"};
  selection.process_ids = {{0}, {3}};
  selection.thread = "^io-[0-9]+$|x&y=z";
  selection.threads = {{{4}, {7}}};
  selection.from_ns = 2'000'000'000;
  selection.to_ns = 5'000'000'001;
  selection.focus = "std::map<.*>::operator\\[\\]";
  selection.ignore = "100 %";
  selection.functions = {{1, 2}};
  selection.without_idle = true;
  return selection;
}

TEST(SelectionText, ComesBackAsItWas) {
  std::vector<Selection> all{{}, everything()};
  Selection none;
  none.threads.emplace();
  none.functions.emplace();
  all.push_back(none);
  Selection zero;
  zero.from_ns = 0;
  all.push_back(zero);
  for (const Selection& selection : all) {
    auto back = parse_selection(selection_text(selection));
    ASSERT_TRUE(back) << selection_text(selection);
    EXPECT_EQ(*back, selection) << selection_text(selection);
  }
  EXPECT_EQ(selection_text({}), "");
}

TEST(SelectionText, RandomTextsComeBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    Selection selection;
    auto text = [&] {
      std::string made(1 + random() % 6, ' ');
      for (char& c : made) c = static_cast<char>(random() % 256);
      return made;
    };
    for (size_t k = random() % 4; k > 0; --k) selection.pools.push_back(text());
    for (size_t k = random() % 3; k > 0; --k) selection.processes.push_back(text());
    selection.thread = text();
    selection.focus = text();
    auto back = parse_selection(selection_text(selection));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, selection);
  }
}

TEST(SelectionText, IsWhatADocumentSays) {
  Selection selection;
  selection.pids = {10, 11};
  selection.pools = {"worker-*"};
  selection.from_ns = 2'000'000'000;
  EXPECT_EQ(selection_text(selection), "pid=10,11&pool=worker-*&from=2000000000");
  EXPECT_EQ(describe(selection), "pid 10, 11; pool worker-*; time 2.00 s..");
}

TEST(SelectionText, RefusesWhatIsNone) {
  for (const char* text :
       {"pids=1", "pid=x", "pid=", "pid=-1", "pid=1,,2", "tid=99999999999", "threads=0,,1",
        "threads=-1", "from=-5", "from=9&to=3", "idle=2", "functions=1.5", "thread=%zz"}) {
    EXPECT_FALSE(parse_selection(text)) << text;
  }
}

TEST(SelectionText, AmongOtherParametersItTakesItsOwn) {
  auto selection = selection_among({{"bins", "7"}, {"pid", "3"}});
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->pids, std::vector<pid_t>{3});
}

Contents two_processes() {
  Contents run;
  run.info.window_begin_ns = 1000;
  run.info.window_end_ns = 2000;
  for (uint32_t i = 0; i < 2; ++i) {
    model::Process process;
    process.id = {i};
    process.pid = 100 * static_cast<pid_t>(i + 1);
    process.exe = "/opt/server-1.2";
    process.comm = "server";
    process.role = i == 0 ? "main" : "worker 0";
    run.processes.push_back(process);
  }
  run.threads.push_back({{0}, {0}, 100, "accept", "", 0, 5000});
  run.threads.push_back({{1}, {1}, 200, "pool-1", "pool-*", 0, 5000});
  run.threads.push_back({{2}, {1}, 201, "pool-2", "pool-*", 0, 5000});
  run.threads.push_back({{3}, {9}, 300, "stray", "", 0, 5000});  // of no listed process
  return run;
}

std::string marks(const std::string& text) {
  auto selection = parse_selection(text);
  EXPECT_TRUE(selection) << text;
  auto chosen = choose_threads(*selection, two_processes());
  if (!chosen) return chosen.error().what;
  std::string out;
  for (bool mark : *chosen) out += mark ? '1' : '0';
  return out;
}

TEST(ChooseThreads, ByEveryName) {
  EXPECT_EQ(marks(""), "1111");
  EXPECT_EQ(marks("pid=200"), "0110");
  EXPECT_EQ(marks("pid=100,200"), "1110");
  EXPECT_EQ(marks("tid=201,300"), "0011");
  EXPECT_EQ(marks("pool=pool-*"), "0110");
  EXPECT_EQ(marks("pool=accept,stray"), "1001");
  EXPECT_EQ(marks("process=main"), "1000");
  EXPECT_EQ(marks("process=server"), "1110");
  EXPECT_EQ(marks("process=server-1.2"), "1110");
  EXPECT_EQ(marks("process=server [worker 0]"), "0110");
  EXPECT_EQ(marks("process=200"), "0110");
  EXPECT_EQ(marks("processes=1"), "0110");
  EXPECT_EQ(marks("thread=-[0-9]$"), "0110");
  EXPECT_EQ(marks("thread=201"), "0010");
  EXPECT_EQ(marks("threads=0,3"), "1001");
  EXPECT_EQ(marks("threads="), "0000");
  EXPECT_EQ(marks("pid=200&thread=2$"), "0010");
}

TEST(ChooseThreads, SaysWhatMatchesNothing) {
  EXPECT_EQ(marks("pid=7"), "the run has no thread that matches pid 7");
  EXPECT_EQ(marks("pid=100&pool=pool-*"),
            "the run has no thread that matches pid 100; pool pool-*");
  EXPECT_EQ(marks("threads=4"), "parameter threads: the run has no number 4");
  EXPECT_NE(marks("thread=("), "0000");
}

TEST(ChosenTime, IsCutToTheWindow) {
  Contents run = two_processes();
  EXPECT_EQ(chosen_time(*parse_selection(""), run), (model::TimeSpan{1000, 2000}));
  EXPECT_EQ(chosen_time(*parse_selection("from=100&to=300"), run), (model::TimeSpan{1100, 1300}));
  EXPECT_EQ(chosen_time(*parse_selection("from=900&to=99999999"), run),
            (model::TimeSpan{1900, 2000}));
  EXPECT_TRUE(chosen_time(*parse_selection("from=5000"), run).empty());
}

TEST(TimeRangeText, HasTwoEndsOrOne) {
  Selection selection;
  ASSERT_TRUE(parse_time_range("2s..2500ms", selection));
  EXPECT_EQ(selection.from_ns, 2'000'000'000);
  EXPECT_EQ(selection.to_ns, 2'500'000'000);
  Selection open;
  ASSERT_TRUE(parse_time_range("..3s", open));
  EXPECT_FALSE(open.from_ns);
  EXPECT_EQ(open.to_ns, 3'000'000'000);
  for (const char* text : {"", "..", "3s", "3s...", "a..b"})
    EXPECT_FALSE(parse_time_range(text, open)) << text;
}

}  // namespace
}  // namespace assay::run
