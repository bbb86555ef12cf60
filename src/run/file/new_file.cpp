#include "run/file/new_file.h"

#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run_tables.h"
#include "run/file/schema.h"
#include "run/file/sqlite.h"

namespace assay::run {
namespace {

std::unexpected<Error> already_exists(const std::string& path) {
  return fail_with_remedy(fmt::format("{} exists already", path),
                          "choose another name with -o, or pass --overwrite to replace it", EEXIST);
}

Result<void> check_directory(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  return fail_with_remedy(
      fmt::format("cannot write {}: {}: {}", path, directory, std::strerror(errno)),
      "choose a place that can be written to with -o", errno);
}

Result<void> fill(const std::string& path, const model::RunInfo& info) {
  auto database = Database::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!database) return std::unexpected(database.error());
  // No other program sees this file before it is complete, so it needs no journal.
  const char* begin = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN";
  if (auto done = database->execute(begin); !done) return done;
  if (auto done = database->execute(kSchemaSql); !done) return done;
  RunTables tables(*database);
  if (auto done = tables.prepare(); !done) return done;
  if (auto done = tables.write_info(info); !done) return done;
  return database->execute("COMMIT");
}

Result<void> move_into_place(const std::string& from, const std::string& to, bool overwrite) {
  // A journal left by a killed capture would be rolled into the new file.
  if (overwrite || ::access(to.c_str(), F_OK) != 0) ::unlink((to + "-journal").c_str());
  if (overwrite) {
    if (::rename(from.c_str(), to.c_str()) != 0) return fail_errno("cannot write {}", to);
    return {};
  }
  // link() never replaces a file, even when another process was faster; not every file system has
  // it.
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return {};
  }
  if (errno == EEXIST) return already_exists(to);
  if (::rename(from.c_str(), to.c_str()) != 0) return fail_errno("cannot write {}", to);
  return {};
}

}  // namespace

Result<void> check_place(const std::string& path, bool overwrite) {
  if (path.empty()) return fail("a run needs a file name");
  if (auto writable = check_directory(path); !writable) return writable;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("cannot write {}", path);
  }
  // Renaming over a device or a directory would destroy more than a file.
  if (!S_ISREG(status.st_mode)) {
    return fail_with_remedy(fmt::format("{} exists and is not a regular file", path),
                            "choose another name with -o", EEXIST);
  }
  if (!overwrite) return already_exists(path);
  auto old = Database::open(path, SQLITE_OPEN_READONLY);
  if (!old) return {};
  int code = sqlite3_exec(old->handle(), "SELECT 1 FROM sqlite_schema", nullptr, nullptr, nullptr);
  if ((code & 0xff) == SQLITE_BUSY) {
    return fail_with_remedy(fmt::format("{} is being written by a running capture", path),
                            "end that capture first, or choose another name with -o", EBUSY);
  }
  return {};
}

Result<void> make_run_file(const std::string& path, const model::RunInfo& info, bool overwrite) {
  if (auto free = check_place(path, overwrite); !free) return free;
  std::string temporary = fmt::format("{}.new.{}", path, ::getpid());
  ::unlink(temporary.c_str());
  auto done = fill(temporary, info);
  if (done) done = move_into_place(temporary, path, overwrite);
  if (!done) {
    ::unlink(temporary.c_str());
    // The temporary name would not help the user.
    std::string& what = done.error().what;
    for (size_t at; (at = what.find(temporary)) != std::string::npos;) {
      what.replace(at, temporary.size(), path);
    }
  }
  return done;
}

}  // namespace assay::run
