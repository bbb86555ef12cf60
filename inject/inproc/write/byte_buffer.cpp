#include "inject/inproc/write/byte_buffer.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {

ByteBuffer::~ByteBuffer() {
  unmap_pages(bytes_, room_);
}

bool ByteBuffer::reserve(size_t count) {
  if (failed_) return false;
  if (count <= room_ - size_) return true;
  size_t room = room_ == 0 ? 16 << 10 : room_ * 2;
  while (room - size_ < count && room < kMaxBytes) room *= 2;
  if (room > kMaxBytes || room - size_ < count) {
    failed_ = true;
    return false;
  }
  void* made = bytes_ == nullptr ? map_pages(room) : mremap(bytes_, room_, room, MREMAP_MAYMOVE);
  if (made == nullptr || made == MAP_FAILED) {
    failed_ = true;
    return false;
  }
  bytes_ = static_cast<char*>(made);
  room_ = room;
  return true;
}

void ByteBuffer::append(const void* bytes, size_t count) {
  if (count == 0 || !reserve(count)) return;
  std::memcpy(bytes_ + size_, bytes, count);
  size_ += count;
}

void ByteBuffer::print(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int wrote = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (wrote < 0) return;
  if (static_cast<size_t>(wrote) < sizeof line) {
    append(line, static_cast<size_t>(wrote));
    return;
  }
  if (!reserve(static_cast<size_t>(wrote) + 1)) return;
  va_start(arguments, format);
  vsnprintf(end(), static_cast<size_t>(wrote) + 1, format, arguments);
  va_end(arguments);
  grow(static_cast<size_t>(wrote));
}

void ByteBuffer::swap(ByteBuffer& other) {
  char* bytes = bytes_;
  size_t size = size_, room = room_;
  bool failed = failed_;
  bytes_ = other.bytes_, size_ = other.size_, room_ = other.room_, failed_ = other.failed_;
  other.bytes_ = bytes, other.size_ = size, other.room_ = room, other.failed_ = failed;
}

bool read_whole_file(const char* path, ByteBuffer& into) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = 0;
  do {
    if (!into.reserve(64 << 10)) break;
    got = read(fd, into.end(), 64 << 10);
    if (got > 0) into.grow(static_cast<size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  close(fd);
  return got == 0;
}

}  // namespace assay::inproc
