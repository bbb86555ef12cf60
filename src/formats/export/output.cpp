#include "formats/export/output.h"

#include <sys/stat.h>
#include <unistd.h>

namespace assay::formats {

Result<Output> Output::create(const std::string& path) {
  Output output;
  output.path_ = path;
  if (path.empty() || path == "-") {
    output.file_.reset(stdout);
    return output;
  }
  // A device or a pipe that the user named is written directly: renaming would replace it.
  struct stat status {};
  bool direct = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (direct && S_ISDIR(status.st_mode)) return fail("{} is a directory", path);
  std::string place = direct ? path : path + ".part-" + std::to_string(getpid());
  output.file_.reset(fopen(place.c_str(), "we"));
  if (!output.file_) return fail_errno("cannot write {}", path);
  if (!direct) output.temporary_ = place;
  return output;
}

Output::~Output() {
  if (!temporary_.empty() && file_) ::unlink(temporary_.c_str());
}

void Output::write(std::string_view bytes) {
  if (!file_) {
    text_ += bytes;
    return;
  }
  if (error_ != 0) return;
  errno = 0;
  if (fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    error_ = errno != 0 ? errno : EIO;
  }
}

Result<void> Output::commit() {
  if (!file_) return {};
  if (error_ == 0 && fflush(file_.get()) != 0) error_ = errno;
  if (error_ != 0) {
    errno = error_;
    return fail_errno("cannot write {}", path_.empty() ? "standard output" : path_);
  }
  if (!temporary_.empty() && ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail_errno("cannot write {}", path_);
  }
  temporary_.clear();
  file_.reset();
  return {};
}

}  // namespace assay::formats
