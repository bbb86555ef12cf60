// RollbackJournal: the journal that a killed capture left beside its run, read by ourselves.
//
// SQLite would follow a journal wherever it leads: it deletes the file that a journal names as its
// super-journal, and cuts the run to the length that the journal tells. So SQLite never sees one. A
// journal is used only if it is the run's own: a regular file without other names, of the run's
// owner or of root. Its pages are found and checked as SQLite would (header, checksums, order) and
// are read in the place of the run's own; nothing is written or removed. Anything else beside the
// run is left alone.
// In: what stands at the journal's place, and the run's own facts; out: where the older pages
// are. Threads: const after reading. Failures: a journal of the run's owner that names another
// journal, has pages of another size or more pages than the run, or cannot be read, is an Error: to
// read the run without it could show half of a transaction.
// Format: https://www.sqlite.org/fileformat2.html#rollbackjournal
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "base/file_door.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::run {

struct JournaledRun {
  std::string path;  // for messages
  uid_t owner = 0;
  uint64_t bytes = 0;
  uint64_t page_bytes = 0;  // 0: the run's own header does not tell
};

class RollbackJournal {
 public:
  // nullopt: there is none that counts.
  static Result<std::optional<RollbackJournal>> read(Result<FoundFile> found,
                                                     const JournaledRun& run);

  uint64_t page_bytes() const { return page_bytes_; }
  uint64_t run_bytes() const { return page_bytes_ * run_pages_; }
  // The place of a page's older contents in fd(); pages count from 1.
  std::optional<uint64_t> find(uint64_t page) const;
  int fd() const { return fd_.get(); }

 private:
  struct Header;
  std::optional<Header> header_at(uint64_t offset) const;
  bool take_records(const Header& header, uint64_t& offset);
  Result<bool> take(const JournaledRun& run);
  bool names_super_journal() const;

  UniqueFd fd_;
  uint64_t bytes_ = 0;
  uint64_t page_bytes_ = 0, run_pages_ = 0, sector_bytes_ = 0;
  std::unordered_map<uint32_t, uint64_t> pages_;
};

}  // namespace assay::run
