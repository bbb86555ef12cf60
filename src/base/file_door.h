// FileDoor: how this process comes to files by their names.
//
// What parses bytes of strangers has no right to open, make or remove a file (os/sandbox/worker.h).
// So whoever needs a file asks the door. Of an ordinary process the door does it at once; of a
// confined one it asks the process that started it, which does only what the command line allows.
// The default door is the direct one; set_file_door() is called once, before there are threads.
// Threads: any. Failures: Errors that name the path, with errno.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// What a file is opened for, which decides what is accepted.
enum class Purpose : uint8_t {
  run,             // a regular file; links are followed
  journal,         // a regular file beside a run; links are not followed
  capture,         // anything but a directory: a pipe may be imported
  source,          // a regular file that a run names
  module,          // a program or its debug file, that a capture names
  kernel_symbols,  // /proc/kallsyms, and which boot it is of
  cache,           // an entry of the caches; links are not followed
};
inline constexpr uint8_t kPurposes = 7;

struct FoundFile {
  UniqueFd fd;            // to read from; of a journal that may not be read, none
  std::string real_path;  // without links; empty where it is not known
  uid_t owner = 0;
};

// What is done with what stands at the place of a new file.
enum class Existing : uint8_t { refuse, replace };

// A new file that is not in its place yet. Gone without commit().
class FileInTheMaking {
 public:
  virtual ~FileInTheMaking() = default;
  virtual Result<void> commit() = 0;
};

struct NewFile {
  UniqueFd fd;  // to read from and to write to
  std::unique_ptr<FileInTheMaking> making;
};

class FileDoor {
 public:
  virtual ~FileDoor() = default;
  virtual Result<FoundFile> open(const std::string& path, Purpose purpose) = 0;
  virtual Result<NewFile> create(const std::string& path, Existing existing) = 0;
  // A file without a name, for what does not fit into memory.
  virtual Result<UniqueFd> temporary() = 0;
};

FileDoor& direct_door();
FileDoor& file_door();
// `door` must outlive every use of it; nullptr: the direct one.
void set_file_door(FileDoor* door);
inline bool asks_for_files() {
  return &file_door() != &direct_door();
}

}  // namespace assay
