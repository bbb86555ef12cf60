// LifeWatch: which processes have ended, and when the last of them did.
//
// A process has ended when all its threads have, also while its parent has not yet taken note of
// it. wait() sleeps until one ends, so that ends are known within the moment. In: process ids, by
// follow(). Threads: one owner. Failures: what cannot be watched (too many, an old kernel) never
// ends here; its follower finds out in other ways.
#pragma once

#include <map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace assay::session {

class LifeWatch {
 public:
  // Watches these from now on and forgets all others.
  void follow(const std::vector<pid_t>& pids);
  // Until the time is over or one ends.
  void wait(int64_t ns);
  // All that are followed; false where none are.
  bool all_ended() const;
  // When the last one was seen to have ended; 0: none has.
  TimeNs last_end() const { return last_end_; }

 private:
  struct Watched {
    UniqueFd pidfd;  // none once it has ended, or where it cannot be watched
    bool ended = false;
  };
  void end(Watched& watched);

  std::map<pid_t, Watched> watched_;
  TimeNs last_end_ = 0;
};

}  // namespace assay::session
