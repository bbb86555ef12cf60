// Credentials: whose rights a file is opened with.
//
// Assay may run as root, but a target must not make it read what the target's own user may not
// read. So a file that a target names is opened with the rights of the target: ActAs takes them on
// for the calling thread, and gives them back when it goes. Threads: only the calling thread
// changes. Failures: when the rights cannot be taken on, holds() is false, and the caller must not
// open the file.
#pragma once

#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace assay::os {

// The user with the fewest rights, by number.
inline constexpr uid_t kNobody = 65534;

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// What process `pid` opens files with: its file-system user, group and supplementary groups. `proc`
// is /proc.
Result<Credentials> credentials_of(pid_t pid, const std::string& proc = "/proc");

class ActAs {
 public:
  explicit ActAs(const Credentials& wanted);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

  bool holds() const { return holds_; }

 private:
  bool take_on(const Credentials& wanted);
  bool set_capabilities(uint32_t effective_low);

  bool changed_user_ = false;
  bool changed_groups_ = false;
  bool changed_capabilities_ = false;
  bool holds_ = false;
  uid_t own_uid_ = 0;
  gid_t own_gid_ = 0;
  uint32_t own_effective_low_ = 0;
  std::vector<gid_t> own_groups_;
};

}  // namespace assay::os
