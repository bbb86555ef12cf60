// ByteBuffer: bytes that grow, in pages of their own (see arena.h for why not malloc).
//
// One thread at a time. Failures: without memory, or beyond kMaxBytes, later bytes are left out and
// failed() is true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::inproc {

class ByteBuffer {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 30;

  ByteBuffer() = default;
  ~ByteBuffer();
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  void append(const void* bytes, size_t count);
  void append(std::string_view text) { append(text.data(), text.size()); }
  void print(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // Room for `count` more bytes at end(); grow(n) then says how many were put there.
  bool reserve(size_t count);
  char* end() { return bytes_ + size_; }
  void grow(size_t count) { size_ += count; }
  void clear() { size_ = 0; }
  void swap(ByteBuffer& other);

  const char* data() const { return bytes_; }
  char* data() { return bytes_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_, size_}; }
  bool failed() const { return failed_; }

 private:
  char* bytes_ = nullptr;
  size_t size_ = 0, room_ = 0;
  bool failed_ = false;
};

// The whole of a file (of /proc, where sizes are not known). False: it cannot be read.
bool read_whole_file(const char* path, ByteBuffer& into);

}  // namespace assay::inproc
