#include "run/sql/sql.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/file/sqlite.h"
#include "run/names.h"
#include "run/run_fixture.h"

namespace assay::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Answer {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
  std::string error;
};

class RunSql : public testing::Test {
 protected:
  void SetUp() override { write_fixture_run(path_, 3, 100); }

  Answer ask(const std::string& query, const Selection& selection = {}) {
    Answer answer;
    SqlSink sink;
    sink.columns = [&](std::span<const std::string> names) {
      answer.columns.assign(names.begin(), names.end());
    };
    sink.row = [&](std::span<const SqlValue> row) {
      answer.rows.emplace_back(row.begin(), row.end());
      return true;
    };
    auto done = run_sql(path_, query, sink, selection);
    if (!done) answer.error = done.error().text();
    EXPECT_EQ(done.value_or(answer.rows.size()), answer.rows.size());
    return answer;
  }
  int64_t number(const std::string& query, const Selection& selection = {}) {
    Answer answer = ask(query, selection);
    EXPECT_EQ(answer.error, "") << query;
    if (answer.rows.size() != 1) return -1;
    const int64_t* value = std::get_if<int64_t>(&answer.rows[0][0]);
    return value ? *value : -1;
  }
  std::string text(const std::string& query) {
    Answer answer = ask(query);
    EXPECT_EQ(answer.error, "") << query;
    if (answer.rows.size() != 1) return "(no single row)";
    const std::string* value = std::get_if<std::string>(&answer.rows[0][0]);
    return value ? *value : "(no text)";
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.file("a.assay");
};

TEST_F(RunSql, PlainTablesAnswer) {
  Answer answer = ask("SELECT pid, role FROM process ORDER BY id");
  EXPECT_EQ(answer.error, "");
  EXPECT_THAT(answer.columns, ElementsAre("pid", "role"));
  ASSERT_EQ(answer.rows.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(answer.rows[1][0]), 110);
  EXPECT_EQ(std::get<std::string>(answer.rows[1][1]), "worker 0");
}

TEST_F(RunSql, ColumnsComeWithoutRows) {
  Answer answer = ask("SELECT 1 AS one, 2.5 AS two WHERE 0");
  EXPECT_THAT(answer.columns, ElementsAre("one", "two"));
  EXPECT_TRUE(answer.rows.empty());
}

TEST_F(RunSql, EveryTypeOfValueComesThrough) {
  Answer answer = ask("SELECT 7, 2.5, 'text', x'00ff', NULL");
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(std::get<int64_t>(answer.rows[0][0]), 7);
  EXPECT_EQ(std::get<double>(answer.rows[0][1]), 2.5);
  EXPECT_EQ(std::get<std::string>(answer.rows[0][2]), "text");
  EXPECT_EQ(std::get<std::vector<uint8_t>>(answer.rows[0][3]), (std::vector<uint8_t>{0, 255}));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(answer.rows[0][4]));
}

TEST_F(RunSql, SamplesAndWaitsAgreeWithTheTotalsBesideTheirBlocks) {
  EXPECT_EQ(number("SELECT count(*) FROM samples"), 3 * 6 * 10);
  EXPECT_EQ(number("SELECT count(*) FROM waits"), 3 * 6 * 100);
  EXPECT_EQ(number("SELECT sum(weight_ns) FROM samples"),
            number("SELECT sum(weight_ns) FROM sample_block"));
  EXPECT_EQ(number("SELECT sum(runqueue_ns) FROM waits WHERE pid = 110"),
            number("SELECT sum(runqueue_ns) FROM wait_block WHERE process = 1"));
  EXPECT_EQ(number("SELECT sum(duration_ns - blocked_ns - wakeup_ns - runqueue_ns) FROM waits"),
            0);
  EXPECT_GT(number("SELECT sum(wakeup_ns) FROM waits"), 0);
  EXPECT_EQ(number("SELECT sum(waits) FROM process_total"), 3 * 6 * 100);
  EXPECT_EQ(number("SELECT sum(samples) FROM thread_second"), 3 * 6 * 10);
  EXPECT_EQ(number("SELECT sum(blocked_ns) FROM thread_second"),
            number("SELECT sum(blocked_ns + wakeup_ns) FROM waits"));
}

TEST_F(RunSql, ASelectionLeavesOtherThreadsAndTimesOut) {
  const std::string waits = "SELECT count(*) FROM waits", samples = "SELECT count(*) FROM samples";
  Selection process = *parse_selection("pid=110");
  EXPECT_EQ(number(waits, process), number(waits + " WHERE pid = 110"));
  EXPECT_EQ(number(samples, process), number(samples + " WHERE pid = 110"));
  EXPECT_LT(number(waits, process), number(waits));
  Selection second = *parse_selection("from=1000000000&to=2000000000");
  EXPECT_EQ(number(samples, second), number(samples + " WHERE time_s >= 1.0 AND time_s < 2.0"));
  EXPECT_GT(number(samples, second), 0);
  EXPECT_EQ(number(samples + " WHERE time_s < 1.0", second), 0);
  EXPECT_THAT(ask(waits, *parse_selection("pid=7")).error,
              HasSubstr("no thread that matches pid 7"));
}

TEST_F(RunSql, WaitColumnsSayWhatTheWaitWas) {
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE flags = 'preempted' AND runqueue_ns <> "
                   "duration_ns"),
            0);
  EXPECT_GT(number("SELECT count(*) FROM waits WHERE flags = 'preempted'"), 0);
  EXPECT_EQ(text("SELECT DISTINCT syscall_name FROM waits WHERE syscall = 202"), "futex");
  EXPECT_EQ(text("SELECT DISTINCT fd_kind FROM waits WHERE syscall_name = 'read'"),
            "socket_stream");
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE syscall IS NULL AND syscall_name IS NOT NULL"),
            0);
  EXPECT_GT(number("SELECT count(*) FROM waits WHERE waker_tid BETWEEN 100 AND 112"), 0);
  EXPECT_GT(number("SELECT count(*) FROM waits WHERE owner_tid BETWEEN 100 AND 112"), 0);
  EXPECT_GT(number("SELECT count(stack_text(waker_stack)) FROM waits"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE waker_tid IS NULL AND owner_tid IS NOT NULL"),
            0);
  EXPECT_EQ(
      text("SELECT DISTINCT thread || '/' || pool || '/' || role || '/' || process FROM waits "
           "WHERE tid = 111"),
      "pool-4/pool-*/worker 0/server");
}

// A bound must give exactly what a scan gives; "+" keeps SQLite from handing the bound down.
TEST_F(RunSql, TimeBoundsGiveWhatAScanGives) {
  const char* bounds[] = {"time_s >= 1 AND time_s < 2",
                          "time_s > 1.001 AND time_s <= 1.002",
                          "time_s < 0.0005",
                          "time_s >= 2.5",
                          "time_s BETWEEN 0.5 AND 1.003",
                          "time_s < 'x'",
                          "time_s > NULL",
                          "time_s = 1e300"};
  for (std::string bound : bounds) {
    std::string scan = bound;
    for (size_t at = 0; (at = scan.find("time_s", at)) != std::string::npos; at += 7) {
      scan.insert(at, "+");
    }
    for (std::string table : {"samples", "waits"}) {
      EXPECT_EQ(number("SELECT count(*) FROM " + table + " WHERE " + bound),
                number("SELECT count(*) FROM " + table + " WHERE " + scan))
          << table << " " << bound;
    }
  }
  std::string start = std::to_string(number("SELECT start_ns FROM waits LIMIT 1 OFFSET 250"));
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE start_ns = " + start),
            number("SELECT count(*) FROM waits WHERE +start_ns = " + start));
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE start_ns <= " + start),
            number("SELECT count(*) FROM waits WHERE +start_ns <= " + start));
}

TEST_F(RunSql, BoundsReachTheBlocks) {
  // A damaged block outside the bound is never decoded.
  auto database = Database::open_unguarded(path_, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute("UPDATE wait_block SET data = x'00' WHERE id = 1"));
  database->close();
  EXPECT_THAT(ask("SELECT count(*) FROM waits").error, HasSubstr("wait block 1"));
  EXPECT_EQ(number("SELECT count(*) FROM waits WHERE time_s >= 1"), 2 * 6 * 100);
}

TEST_F(RunSql, JoinsRunSeveralCursorsAtOnce) {
  EXPECT_GT(number("SELECT count(*) FROM samples s JOIN waits w ON w.tid = s.tid AND w.start_ns + "
                   "w.duration_ns = s.time_ns - 10"),
            100);
}

TEST_F(RunSql, StacksHaveText) {
  // Stack 13 is frames 1, 3, 6, 3: parents 6, 3, 1 with frames 6, 3, 1.
  EXPECT_EQ(text("SELECT stack_text(13)"),
            "server+0x1010;outer();inner(int);server+0x1060;outer();"
            "inner(int)");
  EXPECT_EQ(text("SELECT stack_text(9)"),
            "server+0x1010;server+0x1020;main;[kernel]+0xffffffff81000000");
  EXPECT_EQ(text("SELECT stack_text(0)"), "");
  EXPECT_EQ(text("SELECT frame_text(0)"), "[truncated: stack copy too short]");
  EXPECT_EQ(number("SELECT stack_text(99999) IS NULL AND stack_text(-1) IS NULL AND "
                   "stack_text('x') IS NULL AND frame_text(10) IS NULL"),
            1);
  EXPECT_EQ(text("SELECT DISTINCT leaf FROM waits WHERE stack = 4"), "main");
  EXPECT_EQ(text("SELECT name FROM frame_name WHERE frame = 3"), "inner(int)");
}

TEST_F(RunSql, NothingCanBeWrittenOrReached) {
  for (const char* query :
       {"DELETE FROM process", "CREATE TABLE t(x)", "CREATE TEMP TABLE t(x)",
        "DROP VIEW thread_name", "ATTACH '/etc/passwd' AS other", "PRAGMA user_version = 5",
        "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE", "SELECT load_extension('x')",
        "VACUUM INTO '/tmp/copy'", "BEGIN", "INSERT INTO waits(tid) VALUES(1)"}) {
    EXPECT_THAT(ask(query).error,
                testing::AnyOf(HasSubstr("does more than read"), HasSubstr("query failed")))
        << query;
  }
  EXPECT_EQ(number("PRAGMA user_version"), 1);
}

TEST_F(RunSql, WrongQueriesSayWhy) {
  EXPECT_THAT(ask("SELEC 1").error, HasSubstr("syntax error"));
  EXPECT_THAT(ask("SELECT nonsense FROM waits").error, HasSubstr("no such column: nonsense"));
  EXPECT_THAT(ask("").error, HasSubstr("empty"));
  EXPECT_THAT(ask("  -- only a comment").error, HasSubstr("empty"));
  EXPECT_THAT(ask("SELECT 1; SELECT 2").error, HasSubstr("one query at a time"));
  EXPECT_EQ(ask("SELECT 1;  -- done\n").error, "");
}

// Every query between ```sql and ``` of the format's document runs.
TEST_F(RunSql, TheDocumentsExamplesRun) {
  std::filesystem::path document = std::filesystem::path(SOURCE_ROOT) / "docs/run-format.md";
  std::ifstream in(document);
  if (!in) GTEST_SKIP() << "skipped: " << document << " is not here";
  std::string statement;
  bool inside = false;
  int queries = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sql";
      continue;
    }
    if (!inside) continue;
    statement += line + "\n";
    if (!line.ends_with(';')) continue;
    EXPECT_EQ(ask(statement).error, "") << statement;
    statement.clear();
    ++queries;
  }
  EXPECT_GE(queries, 10);
}

TEST_F(RunSql, AReaderMayStopEarly) {
  SqlSink sink;
  int seen = 0;
  sink.row = [&](std::span<const SqlValue>) { return ++seen < 5; };
  auto done = run_sql(path_, "SELECT * FROM waits", sink);
  ASSERT_TRUE(done);
  EXPECT_EQ(*done, 5u);
}

}  // namespace
}  // namespace assay::run
