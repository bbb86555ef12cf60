// GroupGuard: ends a process group when we die without having ended it ourselves, be it by kill -9.
//
// A small child waits at a pipe whose other end only we hold; when that end closes without a word,
// the child sends SIGTERM to the group and, after two seconds, SIGKILL. Threads: one object, one
// thread. Failures: where no child can be had the group is simply not guarded.
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

namespace assay::os {

class GroupGuard {
 public:
  GroupGuard() = default;
  explicit GroupGuard(pid_t group);
  GroupGuard(GroupGuard&& other) noexcept { *this = static_cast<GroupGuard&&>(other); }
  GroupGuard& operator=(GroupGuard&& other) noexcept;
  ~GroupGuard() { dismiss(); }

  // The group has ended, or is to live on: the child leaves without a signal.
  void dismiss();

 private:
  UniqueFd ours_;
  pid_t child_ = 0;  // 0: there is no guard
};

}  // namespace assay::os
