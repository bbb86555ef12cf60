// TableStore: unwind tables by the file they were made from, shared by all Unwinders of the process
// and kept on disk.
//
// In: a file's identity and a way to build its table; out: the table, from memory, from
// `cache_dir`/unwind, or built and stored there (written aside, then renamed). The identity is what
// the kernel says of the file (device, inode, size, times), not the build id that the file claims:
// a library with a false build id gets a table of its own, and other libraries keep theirs. The
// cache is used only where its folder belongs to the caller and no other user can write to it;
// files that are damaged, foreign or of another version are ignored and replaced. A confined process
// reads the cache through its file door and stores nothing: a file that has taken it over would
// otherwise decide what later runs believe of other libraries (docs/security.md). Threads: safe;
// two threads may build the same table at once, one result is kept. Failures: null when the table
// cannot be built; a cache that cannot be written costs only time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "unwind/table/table.h"

namespace assay::unwind {

struct FileIdentity {
  std::string build_id;
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  static std::optional<FileIdentity> of(int fd, const std::string& build_id);
  // Also the name of its file in the cache.
  std::string text() const;
};

class TableStore {
 public:
  using Build = std::function<Result<std::vector<std::byte>>()>;

  explicit TableStore(const std::string& cache_dir);

  std::shared_ptr<const Table> get(const FileIdentity& file, const Build& build) const;

 private:
  std::string path_of(const FileIdentity& file) const;  // "" when it is not kept on disk
  std::shared_ptr<const Table> read(const std::string& path, const std::string& build_id) const;
  void save(const Table& table, const std::string& path) const;

  std::string folder_;  // empty: nothing is kept on disk
};

}  // namespace assay::unwind
