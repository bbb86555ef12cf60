#include "run/file/sqlite.h"

#include <algorithm>
#include <utility>

namespace assay::run {

namespace {

// The file may be hostile: no code in it is run, and the sizes of what it contains are limited.
void distrust(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  struct Limit {
    int what, most;
  };
  constexpr Limit kLimits[]{{SQLITE_LIMIT_ATTACHED, 0},
                            {SQLITE_LIMIT_WORKER_THREADS, 0},
                            {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
                            {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
                            {SQLITE_LIMIT_COLUMN, 200},
                            {SQLITE_LIMIT_EXPR_DEPTH, 200},
                            {SQLITE_LIMIT_COMPOUND_SELECT, 100},
                            {SQLITE_LIMIT_FUNCTION_ARG, 64},
                            {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 4096}};
  for (const Limit& limit : kLimits) sqlite3_limit(handle, limit.what, limit.most);
}

}  // namespace

Result<void> Database::begin(const char* name, int flags, const char* vfs) {
  int code = sqlite3_open_v2(name, &handle_, flags | SQLITE_OPEN_NOMUTEX, vfs);
  if (code != SQLITE_OK) return failure("cannot be opened", code);
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  return {};
}

Result<Database> Database::open(std::shared_ptr<RunFile> file, const std::string& path) {
  Database database;
  database.path_ = path;
  database.file_ = std::move(file);
  database.lent_ = std::make_unique<LentFile>(database.file_);
  bool writes = database.file_->is_writable();
  int flags = writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  auto begun = database.begin(database.lent_->name().c_str(), flags, kRunVfs);
  if (!begun) return std::unexpected(begun.error());
  if (!writes) distrust(database.handle_);
  return database;
}

Result<Database> Database::open_unguarded(const std::string& path, int flags) {
  Database database;
  database.path_ = path;
  auto begun = database.begin(path.c_str(), flags, nullptr);
  if (!begun) return std::unexpected(begun.error());
  return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      lent_(std::move(other.lent_)) {}

Database& Database::operator=(Database&& other) noexcept {
  if (this != &other) {
    close();
    handle_ = std::exchange(other.handle_, nullptr);
    path_ = std::move(other.path_);
    file_ = std::move(other.file_);
    lent_ = std::move(other.lent_);
  }
  return *this;
}

// Does not close the file: the writer still uses it.
void Database::close() {
  sqlite3_close_v2(std::exchange(handle_, nullptr));
  lent_.reset();
}

std::unexpected<Error> Database::failure(std::string_view step, int code) const {
  const char* words = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  bool of_disk = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  int system_code = of_disk && file_ ? file_->last_failure() : 0;
  if ((code & 0xff) == SQLITE_FULL || system_code == ENOSPC || system_code == EDQUOT) {
    return fail_with_remedy(fmt::format("{}: {}: no space left on its disk", path_, step),
                            "free some space, or write the run elsewhere with -o", ENOSPC);
  }
  std::string what = fmt::format("{}: {}: {}", path_, step, words);
  // SQLite's message for an I/O error does not say which one; errno does.
  if (system_code != 0) what += fmt::format(" ({})", std::strerror(system_code));
  return fail_with_remedy(std::move(what), "", system_code);
}

Result<void> Database::execute(const char* sql) const {
  int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(std::string_view(sql).substr(0, 60), code);
  return {};
}

Result<int64_t> Database::query_int(const char* sql) const {
  auto statement = Statement::prepare(*this, sql);
  if (!statement) return std::unexpected(statement.error());
  auto row = statement->next();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->i64(0) : 0;
}

Result<Statement> Statement::prepare(const Database& database, std::string_view sql) {
  Statement statement;
  statement.database_ = &database;
  int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &statement.handle_, nullptr);
  if (code != SQLITE_OK) return database.failure("cannot be read or written", code);
  return statement;
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      next_parameter_(other.next_parameter_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    sqlite3_finalize(handle_);
    database_ = other.database_;
    handle_ = std::exchange(other.handle_, nullptr);
    next_parameter_ = other.next_parameter_;
  }
  return *this;
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

Statement& Statement::bind(int64_t value) {
  sqlite3_bind_int64(handle_, next_parameter_++, value);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  size_t size = std::min(text.size(), kMaxTextBytes);
  // A null pointer would bind NULL; an empty view may hold one.
  sqlite3_bind_text(handle_, next_parameter_++, size ? text.data() : "", static_cast<int>(size),
                    SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_blob(std::span<const uint8_t> bytes) {
  sqlite3_bind_blob(handle_, next_parameter_++, bytes.data(), static_cast<int>(bytes.size()),
                    SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null() {
  sqlite3_bind_null(handle_, next_parameter_++);
  return *this;
}

void Statement::restart() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  next_parameter_ = 1;
}

Result<bool> Statement::next() {
  int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure("cannot be read or written", code);
}

Result<void> Statement::run() {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = sqlite3_step(handle_);
  if (code != SQLITE_DONE) {
    auto error = database_->failure("cannot be written", code);
    restart();
    return error;
  }
  restart();
  return {};
}

std::string Statement::text(int column) const {
  // The order matters: column_text may convert, column_bytes then tells the length of the result.
  const unsigned char* data = sqlite3_column_text(handle_, column);
  int size = sqlite3_column_bytes(handle_, column);
  if (data == nullptr || size <= 0) return "";
  return std::string(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
}

std::span<const uint8_t> Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(handle_, column);
  int size = sqlite3_column_bytes(handle_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const uint8_t*>(data), static_cast<size_t>(size)};
}

}  // namespace assay::run
