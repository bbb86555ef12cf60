// PrivateFile: a new file that its owner alone can read, and that is there whole or not at all.
//
// Every file that Assay leaves behind is made here. The bytes go into a new file beside the place
// (mode 0600 whatever the umask, O_EXCL, no link is followed); commit() renames it into its place,
// and without commit() nothing is left. The bytes are on the disk before the name is, and the name
// before commit() returns. What stands at the place already is replaced only if it is a regular
// file: a symbolic link, a device or a directory is refused.
// Threads: one owner. Failures: Errors that name the place, not the file beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
  enum class Existing : uint8_t { refuse, replace };

  static Result<PrivateFile> create(const std::string& path, Existing existing);
  // A new, empty file at exactly this path, in one step; an Error when anything stands there.
  static Result<UniqueFd> make_at(const std::string& path);
  // Whether create() with Existing::replace would find a place; makes nothing.
  static Result<void> check_place(const std::string& path);

  PrivateFile(PrivateFile&& other) noexcept = default;
  PrivateFile& operator=(PrivateFile&&) = delete;
  ~PrivateFile();

  int fd() const { return fd_.get(); }  // for reading and writing
  Result<void> write(std::string_view bytes);
  Result<void> commit();
  // The descriptor, to go on with; only after commit().
  UniqueFd release() { return std::move(fd_); }

 private:
  PrivateFile() = default;
  Result<void> move_into_place();

  std::string path_, name_;  // as it was given, and its last part
  std::string beside_;       // the last part of the file beside it; empty: it is in its place
  Existing existing_ = Existing::refuse;
  UniqueFd directory_, fd_;
};

}  // namespace assay
