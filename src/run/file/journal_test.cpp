// What stands beside a run is not trusted: reading a run changes nothing, whoever put it there.
#include <csignal>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/file/run_file.h"
#include "run/file/sqlite.h"
#include "run/reader.h"
#include "run/run_fixture.h"
#include "run/sql/sql.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = bytes_of(entry.path());
  return files;
}

std::string word(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}
const std::string kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

uint32_t page_bytes_of(const std::string& run) {
  return static_cast<uint32_t>(static_cast<unsigned char>(run[16])) << 8 |
         static_cast<unsigned char>(run[17]);
}

// A journal without records that says how many pages the run had.
std::string journal_of(uint32_t page_bytes, uint32_t pages) {
  std::string header = kMagic + word(0) + word(1) + word(pages) + word(512) + word(page_bytes);
  header.resize(512);
  return header;
}
// The end of one that belongs to several files: SQLite deletes the one that is named.
std::string super_journal(const std::string& name) {
  uint32_t sum = 0;
  for (char c : name) sum += static_cast<uint32_t>(static_cast<signed char>(c));
  return word(0xffffffff) + name + word(static_cast<uint32_t>(name.size())) + word(sum) + kMagic;
}

class Journal : public ::testing::Test {
 protected:
  Journal() {
    write_fixture_run(path_);
    run_ = bytes_of(path_);
    pages_ = static_cast<uint32_t>(run_.size()) / page_bytes_of(run_);
    write_bytes(victim_, "precious");
  }
  void put_journal(const std::string& bytes) { write_bytes(path_ + "-journal", bytes); }
  std::string read() {
    auto reader = Reader::open(path_);
    if (!reader) return reader.error().text();
    uint64_t rows = 0;
    auto done = (*reader)->for_each_wait({}, [&](const model::Wait&) { ++rows; });
    if (!done) return done.error().text();
    return rows > 0 ? "" : "no rows";
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.file("run.assay"), victim_ = scratch_.file("victim");
  std::string run_;
  uint32_t pages_ = 0;
};

// SQLite by itself does what this room must not let it do: else the tests below show nothing.
TEST_F(Journal, SqliteAloneWouldDeleteWhatAJournalNames) {
  put_journal(journal_of(page_bytes_of(run_), pages_) + super_journal(victim_));
  auto database = Database::open_unguarded(path_, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);
  EXPECT_TRUE(database->query_int("SELECT count(*) FROM sqlite_schema"));
  EXPECT_FALSE(std::filesystem::exists(victim_)) << "this SQLite is harmless, or the test is wrong";
}

TEST_F(Journal, WhatItNamesIsNotDeleted) {
  put_journal(journal_of(page_bytes_of(run_), pages_) + super_journal(victim_));
  auto before = contents_of(scratch_.path());
  EXPECT_THAT(read(), HasSubstr("it names another journal"));
  SqlSink sink{[](auto) {}, [](auto) { return true; }};
  EXPECT_FALSE(run_sql(path_, "SELECT 1", sink));
  EXPECT_FALSE(Writer::create(path_, fixture_info(), false));
  EXPECT_TRUE(Writer::check(path_, true));
  EXPECT_EQ(contents_of(scratch_.path()), before);
}

TEST_F(Journal, ARunIsNotCutToTheLengthThatItTells) {
  put_journal(journal_of(page_bytes_of(run_), 1));
  auto before = contents_of(scratch_.path());
  EXPECT_THAT(read(), HasSubstr("truncated"));
  EXPECT_EQ(contents_of(scratch_.path()), before);
  for (uint32_t pages : {pages_ + 2, 0x7fffffffu, 0xffffffffu}) {
    put_journal(journal_of(page_bytes_of(run_), pages));
    EXPECT_THAT(read(), HasSubstr("more pages than the run has"));
  }
  put_journal(journal_of(65536, 0));
  EXPECT_THAT(read(), HasSubstr("another size"));
}

TEST_F(Journal, OfAnotherUserIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: needs root to make files of another user";
  for (const std::string& bytes :
       {journal_of(page_bytes_of(run_), 1),
        journal_of(page_bytes_of(run_), pages_) + super_journal(victim_)}) {
    put_journal(bytes);
    ASSERT_EQ(::chown((path_ + "-journal").c_str(), 65534, 65534), 0);
    auto before = contents_of(scratch_.path());
    EXPECT_EQ(read(), "");
    EXPECT_EQ(contents_of(scratch_.path()), before);
  }
}

TEST_F(Journal, WhatIsNoFileOfItsOwnIsLeftAlone) {
  std::string journal = path_ + "-journal";
  write_bytes(victim_, journal_of(page_bytes_of(run_), 1));
  std::filesystem::create_symlink(victim_, journal);
  EXPECT_EQ(read(), "") << "a symbolic link";
  std::filesystem::remove(journal);
  std::filesystem::create_hard_link(victim_, journal);
  EXPECT_EQ(read(), "") << "another name of another file";
  std::filesystem::remove(journal);
  ASSERT_EQ(::mkfifo(journal.c_str(), 0600), 0);
  EXPECT_EQ(read(), "") << "a pipe";
}

// A writer makes its journal anew and follows nothing that lies in wait there.
TEST_F(Journal, AWriterFollowsNoLinkAtItsJournalsName) {
  std::string path = scratch_.file("new.assay"), other = scratch_.file("other.assay");
  auto writer = Writer::create(path, fixture_info(), false);
  ASSERT_TRUE(writer) << writer.error().text();
  std::filesystem::remove(path + "-journal");
  std::filesystem::create_symlink(victim_, path + "-journal");
  add_fixture_tables(**writer);
  (void)(*writer)->flush(kFixtureBegin + 1);
  EXPECT_EQ(bytes_of(victim_), "precious");
  std::filesystem::create_symlink(victim_, other + "-journal");
  auto second = Writer::create(other, fixture_info(), false);
  ASSERT_TRUE(second) << second.error().text();
  add_fixture_tables(**second);
  EXPECT_TRUE((*second)->finish(fixture_info()));
  EXPECT_EQ(bytes_of(victim_), "precious");
}

TEST_F(Journal, RunsAreForTheirOwnerAlone) {
  mode_t before = ::umask(0);
  std::string path = scratch_.file("mine.assay");
  auto writer = Writer::create(path, fixture_info(), false);
  ASSERT_TRUE(writer);
  add_fixture_tables(**writer);
  ASSERT_TRUE((*writer)->flush(kFixtureBegin + 1));
  auto mode_of = [](const std::string& file) {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  };
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(mode_of(path + "-journal"), 0600u);
  ASSERT_TRUE((*writer)->finish(fixture_info()));
  EXPECT_EQ(mode_of(path), 0600u) << "packed";
  EXPECT_FALSE(std::filesystem::exists(path + "-journal"));
  ::umask(before);
}

// Killed in the middle of a transaction, page by page what we read is what SQLite would make of it.
TEST(JournalOfAKilledCapture, IsTakenBackAsSqliteWouldDoIt) {
  ScratchDirectory scratch;
  int hot = 0;
  for (int round = 0; round < 400 && hot < 5; ++round) {
    std::string path = scratch.file(fmt::format("{}.assay", round));
    pid_t child = ::fork();
    if (child == 0) {
      auto writer = Writer::create(path, fixture_info(), false);
      if (!writer) ::_exit(1);
      add_fixture_tables(**writer);
      for (int second = 0;; ++second) {
        for (const model::Wait& wait : fixture_rows(second, 400, 1).waits)
          (*writer)->add_wait(wait);
        if (!(*writer)->flush(kFixtureBegin + (second + 1) * kNsPerSecond)) ::_exit(2);
      }
    }
    ::usleep(10'000 + static_cast<useconds_t>(round) * 137 % 20'000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    auto file = RunFile::open(path);
    if (!file || !(*file)->was_cut_off()) continue;
    ++hot;
    auto before = contents_of(scratch.path());
    ASSERT_TRUE(Reader::open(path)) << Reader::open(path).error().text();
    EXPECT_EQ(contents_of(scratch.path()), before) << "reading changed something";
    std::string ours(static_cast<size_t>((*file)->bytes()), '\0');
    for (size_t at = 0; at < ours.size(); at += 4096)
      ASSERT_EQ((*file)->read(ours.data() + at, 4096, at), 4096);
    file->reset();  // and its lock
    auto database = Database::open_unguarded(path, SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database && database->query_int("SELECT count(*) FROM sqlite_schema"));
    database->close();
    EXPECT_EQ(ours, bytes_of(path));
  }
  if (hot == 0) GTEST_SKIP() << "skipped: in 400 rounds no kill hit an open transaction";
}

TEST(HostileSchema, IsRefusedBeforeATableIsRead) {
  ScratchDirectory scratch;
  std::string good = scratch.file("good.assay"), bad = scratch.file("bad.assay");
  write_fixture_run(good);
  for (const char* sql :
       {"ALTER TABLE note ADD COLUMN slow AS (hex(zeroblob(16000000)))",
        "PRAGMA journal_mode = WAL", "DROP TABLE loss; CREATE VIEW loss AS SELECT 1 AS id"}) {
    std::filesystem::copy_file(good, bad, std::filesystem::copy_options::overwrite_existing);
    {
      auto database = Database::open_unguarded(bad, SQLITE_OPEN_READWRITE);
      ASSERT_TRUE(database->execute(sql)) << sql;
    }
    auto reader = Reader::open(bad);
    ASSERT_FALSE(reader) << sql;
    EXPECT_THAT(reader.error().text(), HasSubstr("damaged")) << sql;
  }
}

TEST(HostileSchema, AQueryWritesAndOpensNothing) {
  ScratchDirectory scratch;
  std::string path = scratch.file("run.assay"), other = scratch.file("other");
  write_fixture_run(path);
  auto before = contents_of(scratch.path());
  SqlSink sink{[](auto) {}, [](auto) { return true; }};
  for (const std::string& query : std::vector<std::string>{
           "ATTACH '" + other + "' AS x", "VACUUM INTO '" + other + "'",
           std::string("SELECT load_extension('x')"), std::string("DELETE FROM note"),
           std::string("PRAGMA journal_mode = DELETE"), std::string("PRAGMA writable_schema = ON"),
           "SELECT writefile('" + other + "', 'x')", "SELECT readfile('/etc/hostname')",
           std::string("CREATE TEMP TABLE t(x)"),
           std::string("PRAGMA temp_store_directory = '/'")}) {
    EXPECT_FALSE(run_sql(path, query, sink)) << query;
  }
  EXPECT_EQ(contents_of(scratch.path()), before);
}

}  // namespace
}  // namespace assay::run
