// FileCopy: the bytes of a foreign file, in memory that its owner cannot cut off.
//
// In: a descriptor and a size. Out: the bytes, as they were while they were read; a file that
// shrinks meanwhile ends where it ends then. Up to `most_in_memory` they are in memory, beyond that in
// a file without a name that is ours. Threads: const after reading; reading uses threads of its own.
// Failures: the disk, or no memory.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::formats {

class FileCopy {
 public:
  static Result<std::unique_ptr<FileCopy>> read(int fd, size_t size, size_t most_in_memory);
  ~FileCopy();
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;

  std::string_view bytes() const { return {at_, size_}; }

 private:
  FileCopy() = default;
  Result<void> into_memory(int fd, size_t size);
  Result<void> into_file(int fd, size_t size);

  char* at_ = nullptr;
  size_t size_ = 0, mapped_ = 0;
};

}  // namespace assay::formats
