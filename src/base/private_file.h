// PrivateFile: a new file that its owner alone (or a chosen group, file_group.h) can read, and that
// is there whole or not at all.
//
// Every file that Assay leaves behind is made here. The bytes go into a new file beside the place
// (its mode whatever the umask, O_EXCL, no link is followed); commit() renames it into its place,
// and without commit() nothing is left. The bytes are on the disk before the name is, and the name
// before commit() returns. What stands at the place already is replaced only if it is a regular
// file: a symbolic link, a device or a directory is refused. A confined process has the file made
// by the process that started it (file_door.h).
// Threads: one owner. Failures: Errors that name the place, not the file beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_door.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// The contents and the size of the file survive a loss of power. False: errno.
bool sync_file(int fd);
// The names in the folder do; true where a file system or its rights do not let us ask. False:
// errno.
bool sync_folder(int folder);
bool sync_folder_of(const std::string& path);

class PrivateFile {
 public:
  using Existing = assay::Existing;

  static Result<PrivateFile> create(const std::string& path, Existing existing);
  // A new, empty file at exactly this path, in one step; an Error when anything stands there.
  static Result<UniqueFd> make_at(const std::string& path);
  // Whether create() with Existing::replace would find a place; makes nothing.
  static Result<void> check_place(const std::string& path);

  PrivateFile(PrivateFile&& other) noexcept = default;
  PrivateFile& operator=(PrivateFile&&) = delete;

  int fd() const { return fd_.get(); }  // for reading and writing
  Result<void> write(std::string_view bytes);
  Result<void> commit();
  // The descriptor, to go on with; only after commit().
  UniqueFd release() { return std::move(fd_); }

 private:
  PrivateFile() = default;

  std::string path_;
  UniqueFd fd_;
  std::unique_ptr<FileInTheMaking> making_;
};

// The direct way: a new file beside the place.
Result<NewFile> make_beside(const std::string& path, Existing existing);

}  // namespace assay
