#include "lab/media/request_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "lab/common/process.h"

namespace lab::media {

namespace {
constexpr size_t kBufferBytes = 64 * 1024;
}

RequestLog::RequestLog(const std::string& directory, long synced_lines)
    : fd_(open_nameless_file(directory)), synced_lines_(synced_lines) {
  fcntl(fd_, F_SETFL, O_APPEND);
}

RequestLog::~RequestLog() {
  close(fd_);
}

void RequestLog::request(std::string_view line) {
  if (synced_lines_ > 0) {
    for (long i = 0; i < synced_lines_; ++i) write_line_and_sync(line);
    return;
  }
  std::lock_guard lock(mutex_);
  buffer_.append(line);
  if (buffer_.size() < kBufferBytes) return;
  if (write(fd_, buffer_.data(), buffer_.size()) < 0) die("cannot write the log");
  buffer_.clear();
}

[[gnu::noinline]] void RequestLog::write_line_and_sync(std::string_view line) {
  if (write(fd_, line.data(), line.size()) < 0) die("cannot write the log");
  if (fdatasync(fd_) != 0) die("cannot sync the log");
}

}  // namespace lab::media
