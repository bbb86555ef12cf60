// Database and Statement: SQLite with RAII and Result, no more.
//
// Threads: one Database and its Statements belong to one thread at a time. Failures: every Error
// contains the file, the step and SQLite's message; a full disk has code ENOSPC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "base/result.h"
#include "run/file/run_file.h"
#include "run/file/run_vfs.h"

namespace assay::run {

// Longer text (a hostile command line, a runaway symbol) is cut when it is written.
inline constexpr size_t kMaxTextBytes = size_t{1} << 20;
// No text or blob of a run is longer; SQLite refuses values that claim to be.
inline constexpr int kMaxValueBytes = 32 << 20;

class Database {
 public:
  // The file is known as `path` in messages. Read-only and with a schema that is not trusted,
  // unless the file is one that we make.
  static Result<Database> open(std::shared_ptr<RunFile> file, const std::string& path);
  // For tests that damage runs: SQLite opens the path itself, with SQLITE_OPEN_*, and follows
  // whatever journal stands beside it.
  static Result<Database> open_unguarded(const std::string& path, int flags);

  Database() = default;
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { close(); }

  Result<void> execute(const char* sql) const;
  Result<int64_t> query_int(const char* sql) const;
  std::unexpected<Error> failure(std::string_view step, int code) const;
  void close();

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }
  const std::shared_ptr<RunFile>& file() const { return file_; }  // null: none was lent to it

 private:
  Result<void> begin(const char* name, int flags, const char* vfs);

  sqlite3* handle_ = nullptr;
  std::string path_;
  std::shared_ptr<RunFile> file_;
  std::unique_ptr<LentFile> lent_;
};

class Statement {
 public:
  static Result<Statement> prepare(const Database& database, std::string_view sql);

  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // Parameters count from 1 in the order of the calls; run() and restart() begin again at 1.
  Statement& bind(int64_t value);
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::span<const uint8_t> bytes);  // must stay valid until run() returns
  Statement& bind_null();

  Result<void> run();   // steps to the end and resets
  Result<bool> next();  // steps to a row; false at the end
  void restart();

  int64_t i64(int column) const { return sqlite3_column_int64(handle_, column); }
  bool is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  std::string text(int column) const;
  std::span<const uint8_t> blob(int column) const;  // valid until the next step
  sqlite3_stmt* handle() const { return handle_; }

 private:
  const Database* database_ = nullptr;
  sqlite3_stmt* handle_ = nullptr;
  int next_parameter_ = 1;
};

}  // namespace assay::run
