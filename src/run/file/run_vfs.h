// run_vfs: SQLite's file layer for runs. SQLite opens, follows and deletes no file by its name.
//
// A RunFile is lent out under a number; the name made of it is all that SQLite knows. Of such a
// name it gets the RunFile, and of the name with "-journal" the journal that the RunFile makes.
// Every other name is refused: a journal or write-ahead log that lies beside the run, an attached
// database. Files without a name (for sorting) come from the file door. Threads: safe everywhere.
#pragma once

#include <memory>
#include <string>

#include "run/file/run_file.h"

namespace assay::run {

inline constexpr const char* kRunVfs = "assay-run";

// The name by which SQLite, with the layer kRunVfs, opens the file; for as long as it lives.
class LentFile {
 public:
  explicit LentFile(std::shared_ptr<RunFile> file);
  ~LentFile();
  LentFile(const LentFile&) = delete;
  LentFile& operator=(const LentFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace assay::run
