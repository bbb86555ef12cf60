// Cache: the key-value table of kv, with versions, behind a reader-writer lock.
//
// find() takes the lock shared; a file's lines are applied a chunk at a time, each chunk under the
// lock held exclusively. Any thread may call. Faults (see README.md): `rwlock` holds the lock for a
// share of a file's lines including their parsing, `duplicates` keeps and returns needless copies,
// `leak` keeps every request forever. Failures: malformed lines are counted, and the first of each
// file are reported on stderr; a file that cannot be read is reported. Nothing in a file ends the
// server.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/common/options.h"

namespace lab::kv {

class Cache {
 public:
  explicit Cache(const Options& options);

  std::string find(const std::string& key);
  void remember_request();  // the fault `leak`

  // Reads SNAPSHOT_*, DELTA_* or a realtime file. Lines: UPDATE,key,version,value and
  // DELETE,key,version.
  void load_file(const std::filesystem::path& path);

  uint64_t keys() const;
  uint64_t files() const { return files_; }
  uint64_t malformed() const { return malformed_; }

 private:
  struct Entry {
    std::string value;
    uint64_t version = 0;
    bool deleted = false;
    std::vector<std::string> duplicates;
  };
  struct Change {
    std::string key, value;
    uint64_t version = 0;
    bool deleted = false;
  };

  bool parse_line(std::string_view line, Change& change) const;
  bool check_line(std::string_view line) const;
  void apply(const Change& change);
  void apply_chunk(const std::vector<Change>& changes);
  void load_holding_lock(const std::vector<std::string>& lines, size_t count,
                         const std::string& name);
  void wait_for_source() const;
  void report_malformed(const std::string& name, size_t line);
  std::string duplicate_value(const std::string& value) const;

  const long line_work_, file_pause_ms_, rwlock_percent_, duplicates_, leak_bytes_,
      leak_limit_bytes_;
  mutable std::shared_mutex table_mutex_;
  std::unordered_map<std::string, Entry> table_;  // guarded by table_mutex_
  std::mutex leak_mutex_;
  std::deque<std::vector<char>> leaked_;  // guarded by leak_mutex_
  long leaked_bytes_ = 0;                 // guarded by leak_mutex_
  std::atomic<uint64_t> files_ = 0, malformed_ = 0;
  size_t reported_ = 0;  // of the file that is being loaded; the loader's own
};

}  // namespace lab::kv
