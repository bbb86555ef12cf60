#include "lab/replica/frame.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/common/process.h"

namespace lab::replica {

namespace {
constexpr size_t kHeadBytes = 4;
constexpr size_t kReadBytes = 64 * 1024;

uint32_t length_at(std::string_view bytes) {
  uint32_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length;
}
}  // namespace

FrameWriter::FrameWriter(std::string& out, Type type) : out_(out), start_(out.size()) {
  out_.append(kHeadBytes, '\0');
  out_.push_back(static_cast<char>(type));
}

FrameWriter::~FrameWriter() {
  auto length = static_cast<uint32_t>(out_.size() - start_ - kHeadBytes);
  std::memcpy(out_.data() + start_, &length, sizeof length);
}

FrameWriter& FrameWriter::number(uint64_t value) {
  out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}
FrameWriter& FrameWriter::byte(uint8_t value) {
  out_.push_back(static_cast<char>(value));
  return *this;
}
FrameWriter& FrameWriter::text(std::string_view value) {
  auto length = static_cast<uint16_t>(value.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof length);
  out_.append(value.substr(0, length));
  return *this;
}
FrameWriter& FrameWriter::rest(std::string_view value) {
  out_.append(value);
  return *this;
}

std::string_view Body::take(size_t count) {
  if (count > bytes_.size()) {
    bad_ = true;
    return {};
  }
  std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}
uint64_t Body::number() {
  uint64_t value = 0;
  std::string_view bytes = take(sizeof value);
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
uint8_t Body::byte() {
  std::string_view bytes = take(1);
  return bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
}
std::string_view Body::text() {
  uint16_t length = 0;
  std::string_view bytes = take(sizeof length);
  if (!bytes.empty()) std::memcpy(&length, bytes.data(), sizeof length);
  return take(length);
}

bool FrameReader::has_whole_frame() const {
  std::string_view ready = std::string_view(buffer_).substr(begin_);
  return ready.size() >= kHeadBytes && ready.size() - kHeadBytes >= length_at(ready);
}

bool FrameReader::next(Frame& frame) {
  while (!has_whole_frame()) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() >= kHeadBytes && length_at(buffer_) > kMaxFrameBytes) return false;
    size_t had = buffer_.size();
    buffer_.resize(had + kReadBytes);
    ssize_t got = recv(fd_, buffer_.data() + had, kReadBytes, 0);
    buffer_.resize(had + static_cast<size_t>(got > 0 ? got : 0));
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
  }
  std::string_view ready = std::string_view(buffer_).substr(begin_);
  uint32_t length = length_at(ready);
  if (length < 1 || length > kMaxFrameBytes) return false;
  frame.type = static_cast<Type>(ready[kHeadBytes]);
  frame.body = ready.substr(kHeadBytes + 1, length - 1);
  begin_ += kHeadBytes + length;
  return true;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

int connect_to_loopback(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd);
    return -1;
  }
  set_nodelay(fd);
  return fd;
}

}  // namespace lab::replica
