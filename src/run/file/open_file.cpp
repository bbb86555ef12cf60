#include "run/file/open_file.h"

#include <array>
#include <string_view>

#include "run/file/run_file.h"
#include "run/file/schema.h"

namespace assay::run {
namespace {

// The first bytes of an SQLite file, and where in them the numbers are.
using Header = std::array<unsigned char, 100>;
constexpr size_t kPageSizeAt = 16, kVersionsAt = 18, kPageCountAt = 28, kUserVersionAt = 60,
                 kApplicationAt = 68;

uint32_t big_endian(const Header& header, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | header[at + i];
  return value;
}

Result<void> check_kind(const std::string& path, std::string_view begin) {
  if (begin.starts_with("PERFILE2") || begin.starts_with("\x1f\x8b")) {
    return fail_with_remedy(
        fmt::format("{} is not a run file; it looks like another profiler's", path),
        fmt::format("assay import '{}' -o run.assay", path));
  }
  if (!begin.starts_with("SQLite format 3")) return fail("{} is not a run file", path);
  return {};
}

// Before SQLite sees any of it.
Result<void> check_identity(const RunFile& file, const std::string& path) {
  Header header{};
  ssize_t got = file.read(header.data(), header.size(), 0);
  if (got < 0) return fail_errno("cannot read {}", path);
  std::string_view begin(reinterpret_cast<const char*>(header.data()), static_cast<size_t>(got));
  if (auto kind = check_kind(path, begin); !kind) return kind;
  uint64_t page_bytes = big_endian(header, kPageSizeAt, 2);
  if (page_bytes == 1) page_bytes = 65536;
  uint64_t expected = page_bytes * big_endian(header, kPageCountAt, 4);
  if (begin.size() < header.size() || file.bytes() < expected)
    return fail("{} is truncated: it has {} bytes of {}", path, file.bytes(), expected);
  if (big_endian(header, kApplicationAt, 4) != kApplicationId)
    return fail("{} is an SQLite database, but not a run file", path);
  uint32_t version = big_endian(header, kUserVersionAt, 4);
  if (version > kFormatVersion) {
    return fail_with_remedy(
        fmt::format("{} has format version {}; this assay reads up to version {}", path, version,
                    kFormatVersion),
        "use the assay that wrote it, or a newer one");
  }
  if (version < 1) return damaged(path, fmt::format("format version {} never was", version));
  // 2 would mean a write-ahead log, which no capture makes.
  if (header[kVersionsAt] != 1 || header[kVersionsAt + 1] != 1)
    return damaged(path, "it wants a write-ahead log");
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
  if (!find) return damaged(database.path(), find.error().what);
  for (const char* table : kTables) {
    auto row = find->bind(table).next();
    if (!row) return damaged(database.path(), row.error().what);
    if (find->i64(0) != 1) return damaged(database.path(), fmt::format("no table {}", table));
    find->restart();
  }
  return {};
}

// A column that is computed could take any time for each row.
Result<void> check_columns(const Database& database) {
  auto computed = database.query_int(
      "SELECT count(*) FROM sqlite_schema AS t JOIN pragma_table_xinfo(t.name) AS c "
      "WHERE t.type = 'table' AND c.hidden <> 0");
  if (!computed) return damaged(database.path(), computed.error().what);
  if (*computed != 0) return damaged(database.path(), "a table has columns that are computed");
  return {};
}

Result<Database> open_checked(std::shared_ptr<RunFile> file, const std::string& path) {
  if (auto ours = check_identity(*file, path); !ours) return std::unexpected(ours.error());
  auto database = Database::open(std::move(file), path);
  if (!database) return database;
  const char* begin = "PRAGMA query_only = ON; PRAGMA cell_size_check = ON;";
  if (auto done = database->execute(begin); !done) return damaged(path, done.error().what);
  if (auto whole = check_tables(*database); !whole) return std::unexpected(whole.error());
  if (auto plain = check_columns(*database); !plain) return std::unexpected(plain.error());
  return database;
}

}  // namespace

std::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return fail_with_remedy(fmt::format("{} is damaged: {}", path, what),
                          "restore it from a copy, or record again");
}

Result<Database> open_run_file(const std::string& path) {
  auto file = RunFile::open(path);
  if (!file) return std::unexpected(file.error());
  return open_checked(std::move(*file), path);
}

Result<Database> open_run_file(UniqueFd fd, const std::string& path) {
  auto file = RunFile::read_back(std::move(fd), path);
  if (!file) return std::unexpected(file.error());
  return open_checked(std::move(*file), path);
}

Result<Database> open_again(const Database& database) {
  return open_checked(database.file(), database.path());
}

}  // namespace assay::run
