#include "lab/replica/log_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "lab/common/process.h"
#include "lab/replica/frame.h"

namespace lab::replica {

namespace {

uint32_t checksum(std::string_view bytes) {
  uint32_t sum = 2166136261u;
  for (char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619u;
  return sum;
}

void add_record(std::string& out, std::string_view command) {
  uint32_t head[2] = {static_cast<uint32_t>(command.size()), checksum(command)};
  out.append(reinterpret_cast<const char*>(head), sizeof head);
  out.append(command);
}

}  // namespace

LogFile::LogFile(const std::string& path, const std::string& nameless_directory,
                 long syncs_per_record)
    : syncs_per_record_(syncs_per_record) {
  if (path.empty()) {
    fd_ = open_nameless_file(nameless_directory);
    return;
  }
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) die("cannot open the log " + path);
  read_back();
}

LogFile::~LogFile() {
  close(fd_);
}

void LogFile::read_back() {
  std::string bytes;
  char piece[64 * 1024];
  for (ssize_t got; (got = read(fd_, piece, sizeof piece)) != 0;) {
    if (got < 0) die("cannot read the log");
    bytes.append(piece, static_cast<size_t>(got));
  }
  size_t at = 0;
  uint32_t head[2];
  while (bytes.size() - at >= sizeof head) {
    std::memcpy(head, bytes.data() + at, sizeof head);
    if (head[0] > kMaxFrameBytes || bytes.size() - at - sizeof head < head[0]) break;
    std::string_view command(bytes.data() + at + sizeof head, head[0]);
    if (checksum(command) != head[1]) break;
    commands_.emplace_back(command);
    at += sizeof head + head[0];
  }
  // Bytes after the last complete record were never acknowledged.
  if (ftruncate(fd_, static_cast<off_t>(at)) != 0) die("cannot cut the log");
  if (lseek(fd_, 0, SEEK_END) < 0) die("cannot seek in the log");
}

void LogFile::append(const std::vector<std::string_view>& commands) {
  std::string out;
  for (std::string_view command : commands) {
    add_record(out, command);
    if (syncs_per_record_ == 0) continue;
    sync_record(out);
    out.clear();
  }
  write_all(out);
}

[[gnu::noinline]] void LogFile::sync_record(std::string_view record) {
  write_all(record);
  for (long i = 0; i < syncs_per_record_; ++i) {
    if (fdatasync(fd_) != 0) die("cannot sync the log");
  }
}

void LogFile::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) die("cannot write the log");
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace lab::replica
