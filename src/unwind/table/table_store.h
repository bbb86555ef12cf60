// TableStore: unwind tables by build id, shared by all Unwinders of the process and kept on disk.
//
// In: a module's identity and a way to build its table; out: the table, from memory, from
// `cache_dir`/unwind/BUILDID.v1, or built and stored there (written aside, then renamed). Files
// that are damaged, foreign or of another version are ignored and replaced. Threads: safe; two
// threads may build the same table at once, one result is kept. Failures: null when the table
// cannot be built; a cache that cannot be written costs only time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "unwind/table/table.h"

namespace assay::unwind {

class TableStore {
 public:
  using Build = std::function<Result<std::vector<std::byte>>()>;

  explicit TableStore(std::string cache_dir) : cache_dir_(std::move(cache_dir)) {}

  // `build_id` empty: kept in memory only, under `identity` (path, device, inode, time).
  std::shared_ptr<const Table> get(const std::string& build_id, const std::string& identity,
                                   const Build& build) const;
  // Only from memory or disk.
  std::shared_ptr<const Table> find(const std::string& build_id) const;

 private:
  std::string path_of(const std::string& build_id) const;  // "" when it is not kept on disk
  void save(const Table& table, const std::string& path) const;

  std::string cache_dir_;
};

}  // namespace assay::unwind
