// Follower: loads what lies in a directory, then every file that appears in another.
//
// load_all() takes the newest SNAPSHOT_* and every DELTA_* in the order of their names. follow()
// runs its own thread until the object is destroyed: a file counts when it was closed after writing
// or moved in, so a half-written one is never read; names that start with a dot are ignored.
// Failures: a missing directory ends the server with a message and exit status 1.
#pragma once

#include <atomic>
#include <filesystem>
#include <thread>

#include "lab/kv/cache.h"

namespace lab::kv {

void load_all(Cache& cache, const std::filesystem::path& directory);

class Follower {
 public:
  Follower(Cache& cache, std::filesystem::path directory);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

 private:
  void run();
  Cache& cache_;
  std::filesystem::path directory_;
  int inotify_ = -1, wake_ = -1;
  std::thread thread_;
};

}  // namespace lab::kv
