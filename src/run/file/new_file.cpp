#include "run/file/new_file.h"

#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/private_file.h"
#include "run/file/schema.h"
#include "run/file/sqlite.h"
#include "run/run_tables.h"

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

Result<void> fill(const std::shared_ptr<RunFile>& file, const std::string& path,
                  const model::RunInfo& info) {
  auto database = Database::open(file, path);
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
  if (RunFile::is_being_written(path)) {
    return fail_with_remedy(fmt::format("{} is being written by a running capture", path),
                            "end that capture first, or choose another name with -o", EBUSY);
  }
  return {};
}

Result<std::shared_ptr<RunFile>> make_run_file(const std::string& path, const model::RunInfo& info,
                                               bool overwrite) {
  if (auto free = check_place(path, overwrite); !free) return std::unexpected(free.error());
  using Existing = PrivateFile::Existing;
  auto made = PrivateFile::create(path, overwrite ? Existing::replace : Existing::refuse);
  if (!made) return std::unexpected(made.error());
  UniqueFd fd(::fcntl(made->fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno("cannot write {}", path);
  std::string journal = path + "-journal";
  auto file = RunFile::adopt(std::move(fd), journal);
  if (auto filled = fill(file, path, info); !filled) return std::unexpected(filled.error());
  if (!file->lock_for_writing()) return fail("{} is being written by another process", path);
  // A journal left by a killed capture is not of the new file.
  bool is_stale = overwrite || ::access(path.c_str(), F_OK) != 0;
  if (is_stale && ::unlink(journal.c_str()) == 0) (void)sync_folder_of(path);
  if (auto moved = made->commit(); !moved) {
    if (moved.error().code == EEXIST) return already_exists(path);
    return std::unexpected(moved.error());
  }
  return file;
}

}  // namespace assay::run
