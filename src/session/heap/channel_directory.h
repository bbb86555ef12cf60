// ChannelDirectory: where the processes of a launched program make their heap channels.
//
// A directory of our own, in memory where there is room, that vanishes with this object. Each
// process makes a file named after its process id there (inject/preload/attach.h) and reserves all
// of it; one that stayed empty found no room. In: nothing but the machine; out: a path for the
// environment, and the files. File names are the target's word: of a process that is older than
// Assay itself they are not believed. Threads: one. Failures: no room anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace assay::session {

class ChannelDirectory {
 public:
  ChannelDirectory() = default;
  ~ChannelDirectory();
  ChannelDirectory(const ChannelDirectory&) = delete;
  ChannelDirectory& operator=(const ChannelDirectory&) = delete;

  Result<void> make();
  bool is_made() const { return !path_.empty(); }
  // For the environment of what is launched; %p stands for the process id.
  std::string pattern() const { return path_ + "/%p.heap"; }
  std::string place() const;  // the directory above it, for people
  // Every process reserves its ring: enough for some seconds of what the sampling of all cores may
  // write.
  static uint64_t ring_bytes();

  struct File {
    pid_t pid = 0;
    std::string path;
    uint64_t inode = 0;
    bool is_empty = false;
  };
  std::vector<File> files() const;

 private:
  std::string path_;
  uint64_t began_ticks_ = 0;  // when Assay did
};

}  // namespace assay::session
