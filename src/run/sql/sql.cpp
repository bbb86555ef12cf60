#include "run/sql/sql.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "run/file/open_file.h"
#include "run/load_contents.h"
#include "run/selection/chosen_threads.h"
#include "run/sql/sql_tables.h"

namespace assay::run {
namespace {

// The run is not trusted, so a query may read and compute, and nothing else.
int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  auto is = [](const char* text, std::string_view name) { return text != nullptr && text == name; };
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return is(second, "load_extension") || is(second, "fts3_tokenizer") ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA: {
      static constexpr std::array<std::string_view, 7> kReading{
          "table_info", "table_xinfo",  "table_list",    "index_list",
          "index_info", "user_version", "application_id"};
      bool reads = std::any_of(kReading.begin(), kReading.end(),
                               [&](std::string_view name) { return is(first, name); });
      // These two are written by giving them a value.
      bool writes = second != nullptr && (is(first, "user_version") || is(first, "application_id"));
      return reads && !writes ? SQLITE_OK : SQLITE_DENY;
    }
    default:
      return SQLITE_DENY;
  }
}

std::unexpected<Error> query_failure(const Database& database) {
  int code = sqlite3_errcode(database.handle()) & 0xff;
  if (code == SQLITE_AUTH) {
    return fail_with_remedy("the query does more than read the run, which is not allowed",
                            "use SELECT; copy the file to change it with sqlite3");
  }
  return fail_with_remedy(
      fmt::format("the query failed: {}", sqlite3_errmsg(database.handle())),
      fmt::format(
          "assay sql '{}' \"SELECT type, name, sql FROM sqlite_schema\" lists what there is",
          database.path()));
}

SqlValue value_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const unsigned char* data = sqlite3_column_text(statement, column);
      size_t size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      if (data == nullptr) return {};
      return std::string(reinterpret_cast<const char*>(data), size);
    }
    case SQLITE_BLOB: {
      const auto* data = static_cast<const uint8_t*>(sqlite3_column_blob(statement, column));
      size_t size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
      return data == nullptr ? std::vector<uint8_t>() : std::vector<uint8_t>(data, data + size);
    }
    default:
      return {};
  }
}

// Finalizes what sqlite3_prepare_v2 gave; the query is the user's, so Statement's messages do not
// fit.
struct Query {
  sqlite3_stmt* statement = nullptr;
  ~Query() { sqlite3_finalize(statement); }
};

Result<void> prepare(const Database& database, const std::string& text, Query& query) {
  const char* rest = nullptr;
  int size = static_cast<int>(std::min(text.size() + 1, size_t{kMaxValueBytes}));
  int code = sqlite3_prepare_v2(database.handle(), text.c_str(), size, &query.statement, &rest);
  if (code != SQLITE_OK) return query_failure(database);
  if (query.statement == nullptr) return fail("the query is empty");
  Query more;
  code = sqlite3_prepare_v2(database.handle(), rest, -1, &more.statement, nullptr);
  if (code != SQLITE_OK || more.statement != nullptr) {
    return fail("one query at a time; there is more after the first ';'");
  }
  return {};
}

Result<uint64_t> deliver(const Database& database, sqlite3_stmt* statement, const SqlSink& sink) {
  int count = sqlite3_column_count(statement);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const char* name = sqlite3_column_name(statement, i);
    names.emplace_back(name == nullptr ? "" : name);
  }
  if (sink.columns) sink.columns(names);
  std::vector<SqlValue> row(static_cast<size_t>(count));
  for (uint64_t rows = 0;; ++rows) {
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) return query_failure(database);
    for (int i = 0; i < count; ++i) row[static_cast<size_t>(i)] = value_of(statement, i);
    if (!sink.row(row)) return rows + 1;
  }
}

}  // namespace

Result<uint64_t> run_sql(const std::string& path, const std::string& query, const SqlSink& sink,
                         const Selection& selection) {
  auto database = open_run_file(path);
  if (!database) return std::unexpected(database.error());
  auto contents = load_contents(*database);
  if (!contents) return std::unexpected(contents.error());
  SqlSource source{*database, *contents};
  if (!selection.is_whole()) {
    auto threads = choose_threads(selection, *contents);
    if (!threads) return std::unexpected(threads.error());
    source.threads = std::move(*threads);
  }
  if (selection.narrows_time()) {
    model::TimeSpan time = chosen_time(selection, *contents);
    source.time = {time.begin_ns, time.end_ns};
  }
  if (auto done = register_sql_tables(source); !done) return std::unexpected(done.error());
  sqlite3_set_authorizer(database->handle(), authorize, nullptr);
  Query prepared;
  if (auto done = prepare(*database, query, prepared); !done) return std::unexpected(done.error());
  return deliver(*database, prepared.statement, sink);
}

}  // namespace assay::run
