#include "run/file/open_file.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "run/file/schema.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

uint64_t file_size(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

Result<void> check_is_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno("cannot open {}", path);
  if (S_ISDIR(status.st_mode)) return fail("{} is a directory, not a run file", path);
  if (!S_ISREG(status.st_mode)) return fail("{} is not a regular file", path);
  if (status.st_size == 0) return fail("{} is empty: it holds no run", path);
  if (::access(path.c_str(), R_OK) != 0) return fail_errno("cannot read {}", path);
  return {};
}

uint32_t big_endian(const std::array<unsigned char, 100>& header, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | header[at + i];
  return value;
}

// Says why SQLite could not read the file, from its first bytes. Called only after SQLite refused
// it.
std::unexpected<Error> explain(const std::string& path, const Error& error) {
  std::array<unsigned char, 100> header{};
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(header.data()), header.size());
  std::string_view begin(reinterpret_cast<const char*>(header.data()),
                         static_cast<size_t>(in.gcount()));
  if (begin.starts_with("PERFILE2") || begin.starts_with("\x1f\x8b")) {
    return fail_with_remedy(
        fmt::format("{} is not a run file; it looks like another profiler's", path),
        fmt::format("assay import '{}' -o run.assay", path));
  }
  if (!begin.starts_with("SQLite format 3")) return fail("{} is not a run file", path);
  uint64_t page_bytes = big_endian(header, 16, 2) == 1 ? 65536 : big_endian(header, 16, 2);
  uint64_t expected = page_bytes * big_endian(header, 28, 4);
  uint64_t actual = file_size(path);
  if (begin.size() < header.size() || actual < expected) {
    return fail("{} is truncated: it has {} bytes of {}", path, actual, expected);
  }
  return damaged(path, error.what);
}

bool is_busy(const Database& database) {
  return (sqlite3_errcode(database.handle()) & 0xff) == SQLITE_BUSY;
}

std::unexpected<Error> still_written(const std::string& path) {
  return fail_with_remedy(fmt::format("{} is still being written by a running capture", path),
                          "wait until the capture ends, or end it with Ctrl-C", EBUSY);
}

// Rolls back in place; false when that is not permitted.
Result<bool> roll_back_in_place(const std::string& path) {
  auto database = Database::open(path, SQLITE_OPEN_READWRITE);
  if (!database) return false;
  // SQLite opens read-only on its own when it may not write.
  if (sqlite3_db_readonly(database->handle(), "main") != 0) return false;
  auto read = database->query_int("SELECT count(*) FROM sqlite_schema");
  if (read) return true;
  if (is_busy(*database)) return still_written(path);
  int code = sqlite3_errcode(database->handle()) & 0xff;
  if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM ||
      code == SQLITE_IOERR) {
    return false;
  }
  return explain(path, read.error());
}

// A copy of the run with its journal, rolled back; its files are deleted when it is closed.
Result<Database> open_copy(const std::string& path, const std::string& journal) {
  const char* parent = std::getenv("TMPDIR");
  std::string folder = std::string(parent && *parent ? parent : "/tmp") + "/assay-run-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return fail_with_remedy(
        fmt::format("{} was left by a killed capture and must be rolled back, but neither it nor "
                    "a temporary copy can be written: {}",
                    path, std::strerror(errno)),
        "make the file and its directory writable once, or set TMPDIR");
  }
  std::string copy = folder + "/run", copied_journal = copy + "-journal";
  std::error_code failed;
  fs::copy_file(path, copy, failed);
  if (!failed) fs::copy_file(journal, copied_journal, failed);
  // Copies inherit the original's permissions, which may be read-only.
  ::chmod(copy.c_str(), 0600);
  ::chmod(copied_journal.c_str(), 0600);
  Result<Database> database = Database();
  if (failed) {
    database = fail("{} was left by a killed capture, and a copy to roll it back in {} failed: {}",
                    path, folder, failed.message());
  } else {
    database = Database::open(copy, SQLITE_OPEN_READWRITE);
    if (database) {
      auto read = database->query_int("SELECT count(*) FROM sqlite_schema");
      if (!read) database = explain(path, read.error());
    }
  }
  // SQLite holds the copy open; without names it disappears with the last connection.
  fs::remove_all(folder, failed);
  if (database) database->set_shown_path(path);
  return database;
}

Result<void> check_identity(const Database& database) {
  const std::string& path = database.path();
  auto application = database.query_int("PRAGMA application_id");
  auto version = database.query_int("PRAGMA user_version");
  if (!application || !version) {
    if (is_busy(database)) return still_written(path);
    return explain(path, application ? version.error() : application.error());
  }
  if (*application != kApplicationId) {
    return fail("{} is an SQLite database, but not a run file", path);
  }
  if (*version > kFormatVersion) {
    return fail_with_remedy(
        fmt::format("{} has format version {}; this assay reads up to version {}", path, *version,
                    kFormatVersion),
        "use the assay that wrote it, or a newer one");
  }
  if (*version < 1) return damaged(path, fmt::format("format version {} never was", *version));
  return {};
}

// SQLite treats an incomplete last page as a complete one.
Result<void> check_size(const Database& database, const std::string& file) {
  auto pages = database.query_int("PRAGMA page_count");
  auto page_bytes = database.query_int("PRAGMA page_size");
  if (!pages || !page_bytes)
    return explain(database.path(), pages ? page_bytes.error() : pages.error());
  if (file_size(file) < static_cast<uint64_t>(*pages * *page_bytes))
    return damaged(database.path(), "its end is missing");
  return {};
}

// A view with the name of a table could run any query when it is read; only real tables are
// accepted.
Result<void> check_tables(const Database& database) {
  static constexpr std::array kTables{
      "info",        "fact",  "note",  "process",      "thread",     "module",
      "mapping",     "frame", "stack", "function",     "location",   "series",
      "source_line", "point", "loss",  "sample_block", "wait_block", "thread_second"};
  auto find = Statement::prepare(
      database,
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql NOT "
      "LIKE 'CREATE VIRTUAL%'");
  if (!find) return explain(database.path(), find.error());
  for (const char* table : kTables) {
    auto row = find->bind(table).next();
    if (!row) return explain(database.path(), row.error());
    if (find->i64(0) != 1) return damaged(database.path(), fmt::format("no table {}", table));
    find->restart();
  }
  return {};
}

}  // namespace

std::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return fail_with_remedy(fmt::format("{} is damaged: {}", path, what),
                          "restore it from a copy, or record again");
}

Result<Database> open_run_file(const std::string& path) {
  if (auto file = check_is_file(path); !file) return std::unexpected(file.error());
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  std::string journal = (failed ? path : real.string()) + "-journal";
  Result<Database> database = Database();
  bool rolled_back = true;
  if (file_size(journal) > 0) {
    auto done = roll_back_in_place(path);
    if (!done) return std::unexpected(done.error());
    rolled_back = *done;
  }
  database = rolled_back ? Database::open(path, SQLITE_OPEN_READONLY) : open_copy(path, journal);
  if (!database) return database;
  sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  if (auto ours = check_identity(*database); !ours) return std::unexpected(ours.error());
  if (rolled_back) {
    if (auto whole = check_size(*database, path); !whole) return std::unexpected(whole.error());
  }
  if (auto whole = check_tables(*database); !whole) return std::unexpected(whole.error());
  if (auto done = database->execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON;");
      !done) {
    return std::unexpected(done.error());
  }
  return database;
}

}  // namespace assay::run
