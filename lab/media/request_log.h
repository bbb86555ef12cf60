// RequestLog: one line per request. Healthy: buffered, written 64 kB at a time. Fault `log`: so
// many lines per request, each forced to the disk before the request goes on.
//
// Any thread may write; in the faulty mode no lock is held, so requests wait for the disk. The file
// has no name and is deleted with the process.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace lab::media {

class RequestLog {
 public:
  RequestLog(const std::string& directory, long synced_lines);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void request(std::string_view line);

 private:
  void write_line_and_sync(std::string_view line);

  int fd_;
  long synced_lines_;
  std::mutex mutex_;
  std::string buffer_;  // guarded by mutex_
};

}  // namespace lab::media
