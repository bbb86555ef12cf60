// LogFile: a replica's commands in order, in a file that survives kill -9 of the process.
//
// append() writes whole records with one write() per batch; it returns when the kernel has them, so
// only a crash of the machine could lose them. With the fault `sync` every record is written by
// itself and forced to the disk so many times. At open the file is read back, and cut after the
// last whole record. Record: u32 length, u32 checksum, command. One thread. Failures: a file that
// cannot be written ends the process: continuing would acknowledge commands that are not stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lab::replica {

class LogFile {
 public:
  // Without a path the log has no name and lasts as long as the process.
  LogFile(const std::string& path, const std::string& nameless_directory, long syncs_per_record);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::vector<std::string> take_commands() { return std::move(commands_); }  // found at open
  void append(const std::vector<std::string_view>& commands);

 private:
  void read_back();
  void write_all(std::string_view bytes);
  void sync_record(std::string_view record);

  int fd_;
  long syncs_per_record_;
  std::vector<std::string> commands_;
};

}  // namespace lab::replica
