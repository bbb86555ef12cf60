// TemporaryDirectory: a directory of a test's own, removed with the object. For tests only; a test
// without its directory proves nothing, so a failure to make one throws.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace assay {

class TemporaryDirectory {
 public:
  enum class Where { disk, memory };  // memory: where there is some, for tests that write a lot

  explicit TemporaryDirectory(Where where = Where::disk) {
    if (where == Where::memory && make("/dev/shm")) return;
    if (!make(std::filesystem::temp_directory_path().string()))
      throw std::runtime_error("mkdtemp failed");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // The path of something in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  bool make(const std::string& parent) {
    path_ = parent + "/assay-test-XXXXXX";
    return ::mkdtemp(path_.data()) != nullptr;
  }
  std::string path_;
};

}  // namespace assay
