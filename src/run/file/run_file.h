// RunFile: the bytes of a run, behind one descriptor, for SQLite to read or write.
//
// SQLite never opens a run by its name: it gets a RunFile through its own file layer (run_vfs.h).
// Opened for reading, the file is looked at before it is opened (no device, no pipe), a journal
// that a killed capture left is laid over it (rollback_journal.h), and nothing on disk is changed.
// Made for writing, it is a file that we have just made, and its journal is a new file of ours.
// Locks are SQLite's own bytes, so that captures, readers and the sqlite3 shell see each other.
// Threads: reading is safe everywhere; writing belongs to one. Failures: Errors that name the path;
// reads and writes tell as system calls do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "run/file/rollback_journal.h"

namespace assay::run {

class RunFile {
 public:
  // An Error when it is no regular file, is being written by a capture, or has a journal that is
  // not sound.
  static Result<std::shared_ptr<RunFile>> open(const std::string& path);
  // What we have written ourselves, for reading; `path` names it in Errors.
  static Result<std::shared_ptr<RunFile>> read_back(UniqueFd fd, const std::string& path);
  // A new file of ours. Its journal is made at `journal_path`, or in memory when that is empty.
  static std::shared_ptr<RunFile> adopt(UniqueFd fd, std::string journal_path);
  // Whether a capture is writing what stands there. Opens it, and changes nothing.
  static bool is_being_written(const std::string& path);

  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // Fewer bytes than asked for: the file ends there. −1: errno.
  ssize_t read(void* into, size_t size, uint64_t offset) const;
  uint64_t bytes() const;
  bool is_writable() const { return writable_; }
  bool was_cut_off() const { return journal_.has_value(); }  // a journal lies over it
  int fd() const { return fd_.get(); }
  // Locks out readers and other writers until the file is closed. False: another process has it
  // open.
  bool lock_for_writing() const;

  // The journal of a file that is written. −1: errno. The descriptor is the caller's.
  int open_journal();
  bool has_journal() const { return own_journal_.valid(); }
  // What was written survives a loss of power; so does the journal's name. False: errno.
  bool sync() const;
  bool sync_journal();
  void remove_journal();
  // The errno of the last call that failed; 0: none did.
  int last_failure() const { return last_failure_; }
  void keep_failure(int code) { last_failure_ = code; }
  // Nothing more is written: others may read it. A journal with contents stays, as it is needed to
  // read the run.
  void end_writing();

 private:
  RunFile() = default;
  Result<void> find_journal(const std::string& path, const std::string& real_path);
  uint64_t page_bytes() const;

  UniqueFd fd_;
  bool writable_ = false;
  uid_t owner_ = 0;
  uint64_t bytes_ = 0;                      // when it was opened for reading
  std::optional<RollbackJournal> journal_;  // for reading
  std::string journal_path_;                // for writing
  UniqueFd own_journal_;
  std::atomic<int> last_failure_ = 0;
  bool journal_is_named_ = false;  // on the disk itself
};

}  // namespace assay::run
